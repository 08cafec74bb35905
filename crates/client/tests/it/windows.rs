//! Call windows: waiting, and `busy`.

use std::pin::pin;

use client::{Caller, Client, ErrorCode, Retry, Sent, Server, WhenFull};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use model::ByteSize;

use crate::support::{Bare, Gate, bounded, echo, inproc, tag};

/// A caller with a window of `size` calls, all of which are in flight.
async fn full(gate: &Gate, size: usize) -> (client::ListeningServer, Caller) {
    let listening = gate.on(echo()).listen("tcp://127.0.0.1:0").await.unwrap();
    let builder = Client::builder().in_flight_max(size);
    let caller = builder.connect_caller(listening.address()).await.unwrap();
    for _ in 0..size {
        caller
            .on_reply("wait", "ahead", |outcome| assert!(outcome.is_ok()))
            .unwrap();
    }
    gate.entered.reaches(size).await;
    (listening, caller)
}

#[tokio::test]
async fn a_full_window_fails_with_busy_if_requested() {
    bounded(async {
        let gate = Gate::new();
        let (_listening, caller) = full(&gate, 3).await;
        let error = caller
            .call("echo", "x")
            .when_full(WhenFull::Busy)
            .await
            .unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Busy, Sent::No));
        assert_eq!(error.retry(), Retry::Safe);
        assert!(error.message.contains("3 calls are in flight"), "{error}");
        let mut items = caller.stream("echo", "x").when_full(WhenFull::Busy);
        assert_eq!(
            items.next().await.unwrap().unwrap_err().code,
            ErrorCode::Busy
        );
        let callbacks = caller.callbacks("echo", |_, _| panic!("was refused"));
        assert_eq!(callbacks.call(0, "x").unwrap_err().code, ErrorCode::Busy);
        let refused = caller.on_reply("echo", "x", |_| panic!("was refused"));
        assert_eq!(refused.unwrap_err().code, ErrorCode::Busy);
        gate.unblock(3);
        callbacks.ready().await.unwrap();
        assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
    })
    .await;
}

#[tokio::test]
async fn a_full_window_makes_callers_wait_in_order() {
    bounded(async {
        let gate = Gate::new();
        let (_listening, caller) = full(&gate, 2).await;
        let order = parking_lot::Mutex::new(Vec::new());
        let waiting = (0..20).map(|number| {
            let (caller, order) = (&caller, &order);
            async move {
                let body = number.to_string();
                assert_eq!(caller.call("echo", &body).await.unwrap(), body);
                order.lock().push(number);
            }
        });
        let release = async { gate.unblock(2) };
        tokio::join!(futures_util::future::join_all(waiting), release);
        assert_eq!(order.into_inner(), (0..20).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test]
async fn a_caller_keeps_to_the_window_that_the_server_names() {
    bounded(async {
        let gate = Gate::new();
        let server = gate.on(Server::new()).calls_max(2);
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let mut batch = pin!(caller.call_batch("wait", vec!["x"; 6]));
        assert!(futures_util::poll!(&mut batch).is_pending());
        gate.entered.reaches(2).await;
        let error = caller
            .call("wait", "x")
            .when_full(WhenFull::Busy)
            .await
            .unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Busy, Sent::No));
        gate.unblock(6);
        for outcome in batch.await {
            assert_eq!(outcome.unwrap(), "x");
        }
        assert_eq!(gate.entered.count(), 6);
    })
    .await;
}

#[tokio::test]
async fn a_caller_that_ignores_the_servers_window_is_answered_busy() {
    bounded(async {
        let gate = Gate::new();
        let server = gate.on(Server::new()).calls_max(1);
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        client.bind(1, "wait").await;
        client.request(1, 0, b"first").await;
        client.request(1, 1, b"second").await;
        let refused = client.next().await;
        assert_eq!(refused.header.correlation, tag(1));
        assert_eq!(refused.failure().code, ErrorCode::Busy);
        assert!(!refused.failure().sent);
        gate.unblock(1);
        assert_eq!(client.next().await.body(), b"first");
        client.request(1, 2, b"third").await;
        gate.unblock(1);
        assert_eq!(client.next().await.body(), b"third");
    })
    .await;
}

#[tokio::test]
async fn a_server_bounds_the_bytes_of_requests_that_are_under_way() {
    bounded(async {
        let gate = Gate::new();
        let server = gate
            .on(Server::new())
            .requests_size_max(ByteSize::kibibytes(100));
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let body = vec![7; 40 << 10];
        let calls = (0..5).map(|_| caller.call("wait", &body).into_future());
        let mut calls: FuturesUnordered<_> = calls.collect();
        for _ in 0..3 {
            let error = calls.next().await.unwrap().unwrap_err();
            assert_eq!((error.code, error.sent), (ErrorCode::Busy, Sent::No));
        }
        gate.unblock(2);
        for _ in 0..2 {
            assert_eq!(calls.next().await.unwrap().unwrap(), body);
        }
        // A request above the size limit passes if it is alone.
        gate.unblock(1);
        let large = vec![7; 200 << 10];
        assert_eq!(caller.call("wait", &large).await.unwrap(), large);
    })
    .await;
}

#[tokio::test]
async fn calls_respect_the_clients_own_in_flight_limit() {
    bounded(async {
        let listening = echo().listen(&inproc()).await.unwrap();
        let builder = Client::builder().in_flight_max(1);
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        let outcomes = caller
            .call_batch("echo", (0..300).map(|n| n.to_string()))
            .await;
        for (number, outcome) in outcomes.into_iter().enumerate() {
            assert_eq!(outcome.unwrap(), number.to_string());
        }
    })
    .await;
}
