//! Retries: only safe ones, with a limit, and never beyond the deadline.

use std::time::Duration;

use client::{Bytes, Caller, ErrorCode, Fault, RetryPolicy, Server, WhenFull};
use tokio::time::Instant;
use wire::Kind;

use crate::support::{
    Bare, Node, Probe, WINDOW, bounded, echo, inproc, listen, name, over_every_transport,
};

/// A server whose method fails with `code` for the first `failures` calls.
fn failing(code: ErrorCode, failures: usize) -> (Server, Probe) {
    let made = Probe::default();
    let counted = made.clone();
    let server = Server::new().handle_sync("try", move |request| {
        counted.add(1);
        match counted.count() <= failures {
            true => Err(Fault::with_code(
                code,
                format!("failure {}", counted.count()),
            )),
            false => Ok(request.body),
        }
    });
    (server, made)
}

#[tokio::test]
async fn safe_failures_are_retried_until_success() {
    let made = Probe::default();
    let counted = made.clone();
    let server = Server::new().handle_sync("try", move |request| {
        counted.add(1);
        match counted.count() % 3 {
            0 => Ok(request.body),
            _ => Err(Fault::with_code(ErrorCode::Busy, "not yet")),
        }
    });
    let pauses = (Duration::ZERO, Duration::from_millis(1));
    let policy = RetryPolicy::attempts(3).pauses(pauses.0, pauses.1);
    bounded(over_every_transport(&server, async |caller: Caller| {
        let before = made.count();
        assert_eq!(caller.call("try", "x").retry(policy).await.unwrap(), "x");
        assert_eq!(made.count(), before + 3);
        let mut all = caller.call_all("try", ["a", "b", "c"], 1).retry(policy);
        for body in ["a", "b", "c"] {
            assert_eq!(all.next().await.unwrap().unwrap(), body);
        }
        assert_eq!(made.count(), before + 12);
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_codes_that_are_safe_are_repeated() {
    bounded(async {
        for code in ErrorCode::ALL {
            let (server, made) = failing(code, usize::MAX);
            let listening = server.listen(&inproc()).await.unwrap();
            let caller = Caller::connect(listening.address()).await.unwrap();
            let attempts = |policy| {
                let (caller, made) = (&caller, &made);
                async move {
                    let before = made.count();
                    let error = caller.call("try", "x").retry(policy).await.unwrap_err();
                    assert_eq!(error.code, code);
                    made.count() - before
                }
            };
            let policy = RetryPolicy::attempts(3);
            let safe = match code.retry() {
                client::Retry::Safe => 3,
                client::Retry::Never | client::Retry::MayDuplicate => 1,
            };
            let idempotent = match code.retry() {
                client::Retry::Safe | client::Retry::MayDuplicate => 3,
                client::Retry::Never => 1,
            };
            assert_eq!(attempts(policy).await, safe, "{code}");
            assert_eq!(attempts(policy.idempotent()).await, idempotent, "{code}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_the_outcome_when_the_attempts_are_used_up() {
    bounded(async {
        let (server, made) = failing(ErrorCode::Busy, usize::MAX);
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let call = caller.call("try", "x").retry(RetryPolicy::attempts(4));
        assert_eq!(call.await.unwrap_err().message, "failure 4");
        assert_eq!(made.count(), 4);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_for_all_attempts_together() {
    bounded(async {
        let (server, made) = failing(ErrorCode::Busy, usize::MAX);
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let began = Instant::now();
        let pause = Duration::from_millis(100);
        let call = caller
            .call("try", "x")
            .retry(RetryPolicy::attempts(u32::MAX).pauses(pause, pause));
        let error = call.deadline(Duration::from_secs(2)).await.unwrap_err();
        // An attempt without enough time left returns the previous error.
        assert!(
            matches!(error.code, ErrorCode::Busy | ErrorCode::DeadlineExceeded),
            "{error}"
        );
        assert!(began.elapsed() <= Duration::from_millis(2_001));
        assert!(made.count() > 10, "{}", made.count());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_the_requested_retry_after() {
    bounded(async {
        let made = Probe::default();
        let counted = made.clone();
        let server = Server::new().handle_sync("try", move |request| {
            counted.add(1);
            match counted.count() {
                1 => Err(Fault::with_code(ErrorCode::Throttled, "later")
                    .with_retry_after(Duration::from_secs(3))),
                _ => Ok(request.body),
            }
        });
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let began = Instant::now();
        let call = caller.call("try", "x").retry(RetryPolicy::attempts(2));
        assert_eq!(call.await.unwrap(), "x");
        assert!(began.elapsed() >= Duration::from_secs(3));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unconfirmed_calls_are_retried_only_if_idempotent() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let (caller, mut server) = tokio::join!(
            async { Caller::connect(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let lose = async {
            assert_eq!(server.next().await.header.kind, Kind::REQUEST);
            drop(server);
        };
        let policy = RetryPolicy::attempts(3);
        let (outcome, ()) = tokio::join!(caller.call("x", "x").retry(policy), lose);
        assert_eq!(outcome.unwrap_err().code, ErrorCode::Unconfirmed);

        let lose_and_answer = async {
            for _ in 0..2 {
                let mut server = Bare::accept(&listener, WINDOW).await;
                assert_eq!(server.next().await.header.kind, Kind::REQUEST);
            }
            let mut server = Bare::accept(&listener, WINDOW).await;
            let request = server.next().await;
            server.reply(request.header.correlation, b"third").await;
            server
        };
        let call = caller.call("x", "x").retry(policy.idempotent());
        let (outcome, _server) = tokio::join!(call, lose_and_answer);
        assert_eq!(outcome.unwrap(), "third");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_retried_call_waits_for_an_agent_to_subscribe() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let caller = Caller::connect(&node.address_of(&name())).await.unwrap();
        let error = caller.call("echo", "x").await.unwrap_err();
        assert_eq!(
            (error.code, error.sent),
            (ErrorCode::NoResponder, client::Sent::No)
        );
        let policy = RetryPolicy::attempts(u32::MAX);
        let client = node.client().await;
        let (server, name) = (echo(), name());
        let late = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            server.attach(&client, &name).await.unwrap()
        };
        let (outcome, _attached) = tokio::join!(caller.call("echo", "x").retry(policy), late);
        assert_eq!(outcome.unwrap(), Bytes::from("x"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_by_a_full_window_is_retried() {
    bounded(async {
        let gate = crate::support::Gate::new();
        let listening = gate.on(echo()).listen(&inproc()).await.unwrap();
        let builder = client::Client::builder().in_flight_max(1);
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        caller.on_reply("wait", "x", |_| {}).unwrap();
        let call = caller.call("echo", "x").when_full(WhenFull::Busy);
        let release = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            gate.unblock(1);
        };
        let call = call.retry(RetryPolicy::attempts(u32::MAX));
        let (outcome, ()) = tokio::join!(call, release);
        assert_eq!(outcome.unwrap(), "x");
    })
    .await;
}
