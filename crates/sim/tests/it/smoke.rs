//! Two clients and a node on a network that delays, loses and cuts, under many seeds.

use std::collections::BTreeSet;
use std::time::Duration;

use client::{CallError, Client, ErrorCode, Name, Request, Server};
use sim::{Network, Node, Transcript, Weather, run, run_all};

const CALLS: u32 = 150;

/// Runs a world: an echo agent, a caller on a bad network, cuts of all connections now and then,
/// and a calm end. Returns the transcript.
fn world(seed: u64) -> Vec<String> {
    run(async move {
        let transcript = Transcript::start();
        let network = Network::new(seed, Weather::STORM);
        let node = Node::start(seed, &network);

        let echo = connect(&node, "echo", seed).await;
        let name = Name::parse("sim/smoke/echo").unwrap();
        let server = Server::new().handle("echo", |request: Request| async move {
            let pause = u64::from(request.body[0] % 7);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok(request.body)
        });
        let attached = loop {
            match server.attach(&echo, &name).await {
                Ok(attached) => break attached,
                // The connection was cut before the answer: attach again once it is up.
                Err(error) => assert_ne!(error.retry(), client::Retry::Never, "{error}"),
            }
        };

        let caller_client = connect(&node, "caller", seed + 1).await;
        let caller = caller_client.caller(name.as_str()).unwrap();
        let storm = network.clone();
        let chaos = tokio::spawn(async move {
            let mut dice = fastrand::Rng::with_seed(seed);
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_millis(dice.u64(50..1500))).await;
                storm.cut_all();
            }
        });

        let mut calls = Vec::new();
        for index in 0..CALLS {
            let (caller, transcript) = (caller.clone(), transcript.clone());
            calls.push(tokio::spawn(async move {
                let body = index.to_le_bytes();
                let deadline = Duration::from_secs(3);
                let outcome = caller.call("echo", body).deadline(deadline).await;
                transcript.note(format!("{index} {}", describe(index, &outcome)));
            }));
            tokio::time::sleep(Duration::from_millis(u64::from(index % 40))).await;
        }
        for call in calls {
            call.await.unwrap();
        }
        chaos.await.unwrap();

        network.set_weather(Weather::CALM);
        let recovered = caller
            .call("echo", CALLS.to_le_bytes())
            .deadline(Duration::from_secs(60))
            .retry(client::RetryPolicy::attempts(20).idempotent())
            .await;
        transcript.note(format!("calm: {}", describe(CALLS, &recovered)));
        assert!(
            recovered.is_ok(),
            "seed {seed}: nothing works in calm weather: {recovered:?}"
        );

        drop(attached);
        echo.close().await;
        caller_client.close().await;
        drop((echo, caller, caller_client));
        while node.handle.messaging().connection_count() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(
            node.handle.messaging().pending_call_count(),
            0,
            "seed {seed}"
        );
        assert_eq!(
            node.handle.messaging().subscription_count(),
            0,
            "seed {seed}"
        );
        transcript.lines()
    })
}

async fn connect(node: &Node, host: &'static str, seed: u64) -> Client {
    // The first handshake may fail as well.
    loop {
        match node.client(host, seed).connect("tcp://sim:7400").await {
            Ok(client) => return client,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Describes the outcome in a word. A reply must belong to the call.
fn describe(index: u32, outcome: &Result<client::Bytes, CallError>) -> String {
    match outcome {
        Ok(reply) => {
            assert_eq!(reply[..], index.to_le_bytes(), "a reply met the wrong call");
            "reply".to_owned()
        }
        Err(error) => {
            let possible = [
                ErrorCode::Unconfirmed,
                ErrorCode::Unavailable,
                ErrorCode::DeadlineExceeded,
                ErrorCode::NoResponder,
            ];
            assert!(possible.contains(&error.code), "call {index}: {error}");
            format!("{} {:?}", error.code, error.sent)
        }
    }
}

#[test]
fn every_call_ends_once_and_calls_succeed_after_faults_stop() {
    check(0..100);
}

/// Long run, by `cargo xtask sim`.
#[test]
#[ignore = "minutes"]
fn every_call_ends_once_in_thousands_of_worlds() {
    check(crate::support::seeds(100..20_000));
}

fn check(seeds: std::ops::Range<u64>) {
    let mut outcomes = BTreeSet::new();
    for (seed, lines) in seeds.clone().zip(run_all(seeds, world)) {
        assert_eq!(lines.len() as u32, CALLS + 1, "seed {seed}");
        let last = |line: &String| line.split(' ').next_back().map(str::to_owned);
        outcomes.extend(lines.iter().filter_map(last));
    }
    // Worlds without any fault would prove nothing.
    assert!(outcomes.len() > 2, "{outcomes:?}");
}

#[test]
fn same_seed_gives_the_same_run() {
    assert_eq!(world(7), world(7));
    assert_ne!(world(7), world(8));
}
