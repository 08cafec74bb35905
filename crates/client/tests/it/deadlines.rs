//! Deadlines that pass in the queue, in the handler, and at a server that never answers.

use std::time::Duration;

use client::{Caller, Client, ErrorCode, Retry, Sent, Server, WhenFull};
use tokio::time::Instant;
use wire::{Correlation, Flags, Kind, Payload};

use crate::support::{
    Bare, Gate, Guard, Node, Probe, WINDOW, bounded, echo, inproc, listen, tag, through_a_node,
    wait_until_idle,
};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn call_whose_deadline_passes_in_the_queue_is_not_sent() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let builder = Client::builder().in_flight_max(1);
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        let ahead = caller.call("wait", "ahead").deadline(None);
        let behind = async {
            gate.entered.reaches(1).await;
            let began = Instant::now();
            let error = caller.call("wait", "x").deadline(SHORT).await.unwrap_err();
            assert!(began.elapsed() >= SHORT && began.elapsed() < 2 * SHORT);
            assert_eq!(
                (error.code, error.sent),
                (ErrorCode::DeadlineExceeded, Sent::No)
            );
            assert_eq!(error.retry(), Retry::Safe);
            let mut all = caller.call_all("wait", ["x", "y"], 2).deadline(SHORT);
            while let Some(outcome) = all.next().await {
                let error = outcome.unwrap_err();
                assert_eq!(
                    (error.code, error.sent),
                    (ErrorCode::DeadlineExceeded, Sent::No)
                );
            }
            gate.unblock(9);
        };
        let (ahead, ()) = tokio::join!(ahead, behind);
        assert_eq!(ahead.unwrap(), "ahead");
        assert_eq!(caller.call("wait", "after").await.unwrap(), "after");
        assert_eq!(gate.entered.count(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_passes_in_the_handler_which_is_dropped() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let direct = Caller::connect(listening.address()).await.unwrap();
        let node = Node::start(&inproc()).await;
        let (_attached, behind) = through_a_node(&node, &gate.on(Server::new())).await;
        for (round, caller) in [direct, behind].iter().enumerate() {
            let began = Instant::now();
            let error = caller.call("wait", "x").deadline(SHORT).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::DeadlineExceeded);
            assert_ne!(error.sent, Sent::No);
            assert!(began.elapsed() >= SHORT && began.elapsed() < 3 * SHORT);
            gate.left.reaches(round + 1).await;
            assert_eq!(gate.entered.count(), round + 1);
            wait_until_idle().await;
            assert_eq!(caller.client().in_flight(), 0);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn expired_calls_do_not_affect_concurrent_calls_within_their_deadline() {
    bounded(async {
        let server = Server::new().handle("nap", |request: client::Request| async move {
            let time: u64 = std::str::from_utf8(&request.body)?.parse()?;
            tokio::time::sleep(Duration::from_millis(time)).await;
            Ok(request.body)
        });
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let nap = |time: u64, deadline: u64| {
            let caller = &caller;
            async move {
                let call = caller.call("nap", time.to_string());
                call.deadline(Duration::from_millis(deadline))
                    .await
                    .map_err(|error| error.code)
            }
        };
        let late = Err(ErrorCode::DeadlineExceeded);
        let outcomes = tokio::join!(nap(100, 50), nap(100, 200), nap(300, 250), nap(300, 900));
        assert_eq!((outcomes.0, outcomes.2), (late.clone(), late));
        assert_eq!(
            (outcomes.1.unwrap(), outcomes.3.unwrap()),
            ("100".into(), "300".into())
        );
    })
    .await;
}

#[tokio::test]
async fn a_call_to_a_silent_server_ends_at_its_deadline() {
    bounded(async {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", silent.local_addr().unwrap());
        let (caller, mut server) =
            tokio::join!(async { Caller::connect(&address).await.unwrap() }, async {
                let stream = net::split_tcp(silent.accept().await.unwrap().0).unwrap();
                Bare::welcome(stream, wire::Role::Server, WINDOW).await
            },);
        let error = caller.call("echo", "x").deadline(SHORT).await.unwrap_err();
        assert_eq!(
            (error.code, error.sent),
            (ErrorCode::DeadlineExceeded, Sent::Unknown)
        );
        assert_eq!(error.retry(), Retry::MayDuplicate);
        let outcomes = caller.call_all("echo", ["a", "b"], 2).deadline(SHORT);
        let outcomes: Vec<_> = futures_util::StreamExt::collect(outcomes).await;
        for outcome in outcomes {
            assert_eq!(outcome.unwrap_err().code, ErrorCode::DeadlineExceeded);
        }
        let (done, outcome) = tokio::sync::oneshot::channel();
        let done = parking_lot::Mutex::new(Some(done));
        let callbacks = caller.callbacks("echo", move |_, outcome| {
            let code = outcome.map(|_| ()).map_err(|error| error.code);
            done.lock().take().unwrap().send(code).unwrap();
        });
        callbacks.deadline(SHORT).call(0, "x").unwrap();
        assert_eq!(outcome.await.unwrap(), Err(ErrorCode::DeadlineExceeded));
        let mut items = caller.stream("echo", "x").deadline(SHORT);
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::DeadlineExceeded);

        // The server got a CANCEL for each call.
        let mut cancelled = 0;
        while cancelled < 5 {
            cancelled += usize::from(server.next().await.header.kind == Kind::CANCEL);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_covers_the_time_until_the_server_reads() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let (caller, mut server) = tokio::join!(
            async { Caller::connect(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        // More than the pipe and the client's queue hold, so the last calls are never written.
        let body = vec![7; 1 << 20];
        let calls = (0..16).map(|_| caller.call("echo", &body).deadline(SHORT));
        for outcome in futures_util::future::join_all(calls).await {
            assert_eq!(outcome.unwrap_err().code, ErrorCode::DeadlineExceeded);
        }
        // Unsent calls became requests without a body and with deadline 0, which keep the slots in
        // order.
        let last = caller.call("echo", "still here").deadline(None);
        let serve = async {
            let mut slots = 0;
            loop {
                let frame = server.next().await;
                match frame.header.kind {
                    Kind::CANCEL => continue,
                    Kind::REQUEST => {}
                    kind => panic!("{kind:?}"),
                }
                let to = frame.header.correlation;
                assert_eq!(to, tag(slots));
                slots += 1;
                server.reply(to, frame.body()).await;
                match frame.body().len() {
                    0 => assert_eq!(frame.payload, [0; 4]),
                    10 => break slots,
                    size => assert_eq!(size, 1 << 20),
                }
            }
        };
        let (outcome, slots) = tokio::join!(last, serve);
        assert_eq!(outcome.unwrap(), "still here");
        assert!(slots < 16, "{slots}");
        wait_until_idle().await;
        assert_eq!(caller.client().in_flight(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_without_time_fails_without_being_sent() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let error = caller
            .call("wait", "x")
            .deadline(Duration::ZERO)
            .await
            .unwrap_err();
        assert_eq!(
            (error.code, error.sent),
            (ErrorCode::DeadlineExceeded, Sent::No)
        );
        let callbacks = caller.callbacks("wait", |_, _| {}).deadline(Duration::ZERO);
        let error = callbacks.call(0, "x").unwrap_err();
        assert_eq!(
            (error.code, error.sent),
            (ErrorCode::DeadlineExceeded, Sent::No)
        );
        wait_until_idle().await;
        assert_eq!(gate.entered.count(), 0);
    })
    .await;
}

#[tokio::test]
async fn requests_expired_on_arrival_do_not_run() {
    bounded(async {
        let runs = Probe::default();
        let counted = runs.clone();
        let server = Server::new()
            .handle_sync("work", move |request| {
                counted.add(1);
                Ok(request.body)
            })
            .handle_sync("block", |request| {
                // Delays the requests after it in the same read.
                std::thread::sleep(Duration::from_millis(30));
                Ok(request.body)
            });
        let listening = server.listen(&inproc()).await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        client.bind(1, "work").await;
        client.bind(2, "block").await;
        client
            .frame(|out| {
                let timed = |deadline_ms, route, slot, out: &mut Vec<u8>| {
                    let payload = Payload {
                        deadline_ms: Some(deadline_ms),
                        metadata: &[],
                        body: b"x",
                    };
                    payload.encode(Kind::REQUEST, Flags::NONE, route, tag(slot), out);
                };
                timed(0, 1, 0, out);
                timed(10_000, 2, 1, out);
                timed(5, 1, 2, out);
                timed(10_000, 1, 3, out);
                let late = Payload {
                    deadline_ms: Some(0),
                    metadata: &[],
                    body: b"x",
                };
                late.encode(Kind::SEND, Flags::NONE, 1, Correlation::NONE, out);
            })
            .await;
        for slot in 0..4 {
            let frame = client.next().await;
            assert_eq!(frame.header.correlation, tag(slot));
            match slot {
                0 | 2 => {
                    assert_eq!(frame.failure().code, ErrorCode::DeadlineExceeded);
                    assert!(!frame.failure().sent);
                }
                _ => assert_eq!(frame.body(), b"x"),
            }
        }
        client.frame(|out| wire::encode_ping(tag(9), out)).await;
        assert_eq!(client.next().await.header.kind, Kind::PONG);
        assert_eq!(runs.count(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn handler_sees_and_forwards_its_remaining_deadline() {
    bounded(async {
        let inner = Server::new().handle("inner", |request: client::Request| async move {
            let remaining = request.deadline_remaining().unwrap();
            Ok(remaining.as_millis().to_string())
        });
        let inner_listening = inner.listen(&inproc()).await.unwrap();
        let further = Caller::connect(inner_listening.address()).await.unwrap();
        let outer = Server::new()
            .handle("remaining", |request: client::Request| async move {
                tokio::time::sleep(Duration::from_secs(2)).await;
                let remaining = request.deadline_remaining();
                Ok(format!(
                    "{:?}",
                    remaining.map(|time| time.as_secs_f64().round())
                ))
            })
            .handle("outer", move |request: client::Request| {
                let further = further.clone();
                async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let reply = further.call("inner", "").within(request.context()).await;
                    Ok(reply?)
                }
            });
        let listening = outer.listen(&inproc()).await.unwrap();
        let direct = Caller::connect(listening.address()).await.unwrap();
        let node = Node::start(&inproc()).await;
        let (_attached, behind) = through_a_node(&node, &outer).await;
        for caller in [direct, behind] {
            let call = caller
                .call("remaining", "")
                .deadline(Duration::from_secs(5));
            assert_eq!(call.await.unwrap(), "Some(3.0)");
            let call = caller.call("remaining", "").deadline(None);
            assert_eq!(call.await.unwrap(), "None");
            let call = caller.call("outer", "").deadline(Duration::from_secs(3));
            let remaining: u64 = String::from_utf8_lossy(&call.await.unwrap())
                .parse()
                .unwrap();
            assert!((1_900..=2_000).contains(&remaining), "{remaining}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_connection_counts_against_the_deadline() {
    bounded(async {
        let listening = echo().listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        drop(listening);
        let mut events = caller.client().events();
        let is_down = |state: &_| matches!(state, client::ConnectionState::Reconnecting { .. });
        events.wait_for(is_down).await.unwrap();
        let began = Instant::now();
        let error = caller.call("echo", "x").deadline(SHORT).await.unwrap_err();
        assert!(began.elapsed() >= SHORT && began.elapsed() < 2 * SHORT);
        assert_eq!((error.code, error.sent), (ErrorCode::Unavailable, Sent::No));
        let error = caller
            .one_way("echo", "x")
            .deadline(SHORT)
            .await
            .unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Unavailable, Sent::No));
        let error = caller
            .call("echo", "x")
            .when_full(WhenFull::Busy)
            .await
            .unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Unavailable, Sent::No));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_way_call_deadline_does_not_stop_its_handler() {
    bounded(async {
        let (begun, dropped) = (Probe::default(), Probe::default());
        let probes = (begun.clone(), dropped.clone());
        let server = Server::new().handle("linger", move |_: client::Request| {
            let (begun, dropped) = probes.clone();
            async move {
                let _guard = Guard(dropped);
                begun.add(1);
                tokio::time::sleep(Duration::from_secs(20)).await;
                Ok("")
            }
        });
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let began = Instant::now();
        // The deadline of a one-way call limits its waiting, not the handler.
        caller.one_way("linger", "").deadline(SHORT).await.unwrap();
        begun.reaches(1).await;
        dropped.reaches(1).await;
        assert!(began.elapsed() >= Duration::from_secs(20));
    })
    .await;
}
