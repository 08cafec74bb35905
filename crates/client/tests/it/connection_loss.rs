//! Loss of the connection at any time: each call ends once, and no call hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use client::{
    Builder, CallError, Caller, Client, ConnectionState, Description, ErrorCode, Method, Retry,
    RetryPolicy, Sent, Server, SubscribeOptions, WhenFull,
};
use futures_util::future::join_all;
use wire::{Kind, Subscribe};

use crate::support::{Bare, Gate, Node, Probe, WINDOW, bounded, echo, inproc, listen, name, tag};

/// A client with short reconnect pauses.
fn client_with_short_pauses() -> Builder {
    Client::builder().reconnect(Duration::from_millis(1), Duration::from_millis(20))
}

/// A retry policy without a limit of attempts.
fn retries_without_limit() -> RetryPolicy {
    RetryPolicy::attempts(u32::MAX)
}

fn check_unconfirmed(error: &CallError) {
    assert_eq!(error.code, ErrorCode::Unconfirmed);
    // A node may have reported that the responder got the call.
    assert_ne!(error.sent, Sent::No);
    assert_eq!(error.retry(), Retry::MayDuplicate);
    assert!(!error.message.is_empty());
}

/// Checks that every call ends once and that `again` succeeds, when `lose` ends the connection
/// during calls of every kind and restarts the callee.
async fn check_loss<T>(caller: &Caller, gate: &Gate, lose: impl Future<Output = T>) {
    let seen: Arc<[AtomicU32]> = (0..110).map(|_| AtomicU32::new(0)).collect();
    let settled = Probe::default();
    let settle = {
        let (seen, settled) = (seen.clone(), settled.clone());
        move |index: usize, outcome: Result<&[u8], &CallError>| {
            check_unconfirmed(outcome.unwrap_err());
            seen[index].fetch_add(1, Ordering::AcqRel);
            settled.add(1);
        }
    };
    let each = settle.clone();
    let callbacks = caller.callbacks("wait", move |tag, outcome| each(tag as usize, outcome));
    for tag in 0..100 {
        callbacks.call(tag, "callback").unwrap();
    }
    for index in 100..110 {
        let once = settle.clone();
        caller
            .on_reply("wait", "once", move |outcome| once(index, outcome))
            .unwrap();
    }
    let futures = join_all((0..100).map(|_| caller.call("wait", "future").into_future()));
    let batch = caller.call_batch("wait", vec!["batch"; 100]);
    let mut items = caller.stream("wait", "stream");
    let lost = async {
        gate.entered.reaches(311).await;
        lose.await
    };
    let (futures, batch, item, _callee) = tokio::join!(futures, batch, items.next(), lost);
    for outcome in futures.into_iter().chain(batch) {
        check_unconfirmed(&outcome.unwrap_err());
    }
    check_unconfirmed(&item.unwrap().unwrap_err());
    assert!(items.next().await.is_none());
    settled.reaches(110).await;
    gate.left.reaches(311).await;

    gate.unblock(1000);
    // A node may have reported the ends of the calls before it stopped; then this call is the first
    // to notice the loss.
    let again = caller
        .call("wait", "again")
        .retry(retries_without_limit().idempotent());
    assert_eq!(again.await.unwrap(), "again");
    for outcome in caller.call_batch("wait", vec!["again"; 500]).await {
        assert_eq!(outcome.unwrap(), "again");
    }
    // The slots of the lost calls were used again; each callback was called once.
    assert!(seen.iter().all(|seen| seen.load(Ordering::Acquire) == 1));
    assert_eq!(caller.client().in_flight(), 0);
}

#[tokio::test]
async fn a_server_that_dies_ends_every_call_once_as_unconfirmed() {
    bounded(async {
        let gate = Gate::new();
        let server = gate.on(Server::new());
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let address = listening.address().to_owned();
        let caller = client_with_short_pauses()
            .connect_caller(&address)
            .await
            .unwrap();
        let die_and_return = async {
            drop(listening);
            loop {
                // The port is free once the server's task has ended.
                match server.listen(&address).await {
                    Ok(listening) => break listening,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        check_loss(&caller, &gate, die_and_return).await;
    })
    .await;
}

#[tokio::test]
async fn a_node_that_dies_ends_every_call_once_as_unconfirmed() {
    bounded(async {
        let gate = Gate::new();
        let node = Node::start("tcp://127.0.0.1:0").await;
        let address = node.address().to_owned();
        let beside = client_with_short_pauses().connect(&address).await.unwrap();
        let _attached = gate
            .on(Server::new())
            .attach(&beside, &name())
            .await
            .unwrap();
        let caller = client_with_short_pauses()
            .connect_caller(&node.address_of(&name()))
            .await
            .unwrap();
        let die_and_return = async {
            node.kill().await;
            Node::start(&address).await
        };
        check_loss(&caller, &gate, die_and_return).await;
    })
    .await;
}

#[tokio::test]
async fn a_responder_that_dies_behind_a_node_ends_its_calls_as_unconfirmed() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let mut responder = Bare::introduced(node.address()).await;
        let name = name();
        let subscribe = Subscribe {
            options: 0,
            name: name.as_str(),
            description: None,
        };
        responder.frame(|out| subscribe.encode(tag(0), out)).await;
        assert_eq!(responder.next().await.header.kind, Kind::REPLY);
        let caller = Caller::connect(&node.address_of(&name)).await.unwrap();
        let calls = join_all((0..50).map(|_| caller.call("x", "x").into_future()));
        let die = async {
            for _ in 0..50 {
                assert_eq!(responder.next().await.header.kind, Kind::REQUEST);
            }
            drop(responder);
        };
        let (outcomes, ()) = tokio::join!(calls, die);
        for outcome in outcomes {
            check_unconfirmed(&outcome.unwrap_err());
        }
        let error = caller.call("x", "x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NoResponder);
    })
    .await;
}

#[tokio::test]
async fn calls_that_were_never_sent_end_as_unavailable() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let (caller, server) = tokio::join!(
            async { Caller::connect(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        drop((server, listener));
        let mut events = caller.client().events();
        let is_down = |state: &_| matches!(state, ConnectionState::Reconnecting { .. });
        events.wait_for(is_down).await.unwrap();
        let error = caller
            .call("x", "x")
            .when_full(WhenFull::Busy)
            .await
            .unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Unavailable, Sent::No));
        let error = caller
            .on_reply("x", "x", |_| panic!("was refused"))
            .unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Unavailable, Sent::No));
        let error = caller.one_way("x", "x").now().unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Unavailable, Sent::No));
    })
    .await;
}

#[tokio::test]
async fn calls_waiting_for_window_room_are_sent_after_a_reconnect() {
    bounded(async {
        let gate = Gate::new();
        let server = gate.on(Server::new());
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let address = listening.address().to_owned();
        let caller = client_with_short_pauses()
            .in_flight_max(5)
            .connect_caller(&address)
            .await
            .unwrap();
        let batch = caller.call_batch("wait", vec!["x"; 20]);
        let die_and_return = async {
            gate.entered.reaches(5).await;
            drop(listening);
            gate.left.reaches(5).await;
            gate.unblock(15);
            loop {
                match server.listen(&address).await {
                    Ok(listening) => break listening,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        let (outcomes, _listening) = tokio::join!(batch, die_and_return);
        for outcome in &outcomes[..5] {
            check_unconfirmed(outcome.as_ref().unwrap_err());
        }
        for outcome in &outcomes[5..] {
            assert_eq!(outcome.as_ref().unwrap(), "x");
        }
    })
    .await;
}

#[tokio::test]
async fn runtime_shutdown_makes_calls_of_other_runtimes_unconfirmed() {
    let gate = Gate::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    bounded(async {
        let listening = gate
            .on(Server::new())
            .listen("tcp://127.0.0.1:0")
            .await
            .unwrap();
        let address = listening.address().to_owned();
        let connecting = async move { Caller::connect(&address).await.unwrap() };
        let caller = runtime.spawn(connecting).await.unwrap();
        let end = async {
            gate.entered.reaches(1).await;
            runtime.shutdown_background();
        };
        let (outcome, ()) = tokio::join!(caller.call("wait", "x"), end);
        check_unconfirmed(&outcome.unwrap_err());
        let error = caller.call("wait", "x").await.unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Unavailable, Sent::No));
    })
    .await;
}

#[tokio::test]
async fn calls_succeed_across_repeated_connection_losses() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let beside = client_with_short_pauses()
            .connect(node.address())
            .await
            .unwrap();
        let _attached = echo().attach(&beside, &name()).await.unwrap();
        let caller = client_with_short_pauses()
            .connect_caller(&node.address_of(&name()))
            .await
            .unwrap();
        for round in 0..10 {
            let body = round.to_string();
            let call = caller
                .call("echo", &body)
                .retry(retries_without_limit().idempotent());
            assert_eq!(call.await.unwrap(), body);
            node.handle.messaging().close_all();
        }
    })
    .await;
}

#[tokio::test]
async fn a_description_is_given_again_after_a_reconnect() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let client = client_with_short_pauses()
            .connect(node.address())
            .await
            .unwrap();
        let (name, messaging) = (name(), node.handle.messaging());
        let connection = || Some(messaging.agent(&name)?.subscribers[0].connection);
        let is_described = || {
            let view = messaging.agent(&name);
            let description = view.and_then(|view| view.description);
            description.is_some_and(|it| it.version == "1.2")
        };
        let add = Method::new("add").input("{}");
        let description = Description::new().version("1.2").method(add);
        let options = SubscribeOptions::new().describe(description);
        let _subscription = client.subscribe_with(&name, options).await.unwrap();
        assert!(is_described());
        let before = connection();
        messaging.close_all();
        while !is_described() || connection() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_envelope_of_a_lost_connection_cannot_be_answered() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let beside = client_with_short_pauses()
            .connect(node.address())
            .await
            .unwrap();
        let mut subscription = beside.subscribe(&name()).await.unwrap();
        let caller = client_with_short_pauses()
            .connect_caller(&node.address_of(&name()))
            .await
            .unwrap();
        let lose = async {
            let envelope = subscription.next().await.unwrap();
            let mut events = beside.events();
            node.handle.messaging().close_all();
            let is_down = |state: &_| matches!(state, ConnectionState::Reconnecting { .. });
            events.wait_for(is_down).await.unwrap();
            envelope.reply("too late").unwrap_err()
        };
        let (outcome, error) = tokio::join!(caller.call("", "x"), lose);
        assert_eq!(outcome.unwrap_err().code, ErrorCode::Unconfirmed);
        assert_eq!(error.code, ErrorCode::Unavailable);
    })
    .await;
}
