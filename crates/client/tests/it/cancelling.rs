//! Cancelling: when a caller stops waiting, the handler is dropped.

use std::pin::pin;
use std::task::Poll;

use client::{Bytes, Caller, Server};
use futures_util::FutureExt;
use wire::{Flags, Kind};

use crate::support::{
    Bare, Gate, Guard, Node, Probe, WINDOW, bounded, echo, inproc, listen, over_every_transport,
    through_a_node, wait_until_idle,
};

#[tokio::test]
async fn dropping_a_call_drops_its_handler() {
    let gate = Gate::new();
    bounded(over_every_transport(
        &gate.on(echo()),
        async |caller: Caller| {
            let round = gate.entered.count() + 1;
            {
                let mut call = pin!(caller.call("wait", "x"));
                assert!(futures_util::poll!(&mut call).is_pending());
                gate.entered.reaches(round).await;
                assert_eq!(gate.left.count(), round - 1);
            }
            gate.left.reaches(round).await;
            assert_eq!(caller.call("echo", "after").await.unwrap(), "after");
        },
    ))
    .await;
}

#[tokio::test]
async fn dropping_a_stream_drops_its_handler() {
    let (sent, dropped) = (Probe::default(), Probe::default());
    let probes = (sent.clone(), dropped.clone());
    let server = Server::new().handle_stream("endless", move |_, items| {
        let (sent, dropped) = probes.clone();
        async move {
            let _guard = Guard(dropped);
            loop {
                items.send("item").await?;
                sent.add(1);
            }
        }
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let before = dropped.count();
        let mut items = caller.stream("endless", "");
        for _ in 0..100 {
            assert_eq!(items.next().await.unwrap().unwrap(), "item");
        }
        drop(items);
        dropped.reaches(before + 1).await;
    }))
    .await;
}

#[tokio::test]
async fn dropping_the_replies_of_many_calls_drops_all_of_their_handlers() {
    let gate = Gate::new();
    bounded(over_every_transport(
        &gate.on(Server::new()),
        async |caller: Caller| {
            let entered = gate.entered.count();
            let mut replies = caller.call_all("wait", vec!["x"; 20], 10);
            assert!(replies.next().now_or_never().is_none());
            gate.entered.reaches(entered + 10).await;
            drop(replies);
            gate.left.reaches(entered + 10).await;
        },
    ))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_before_it_has_room_is_never_made() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let builder = client::Client::builder().in_flight_max(1);
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        let mut ahead = pin!(caller.call("wait", "ahead"));
        assert!(futures_util::poll!(&mut ahead).is_pending());
        gate.entered.reaches(1).await;
        {
            let mut dropped = pin!(caller.call("wait", "dropped"));
            assert!(futures_util::poll!(&mut dropped).is_pending());
            wait_until_idle().await;
        }
        let mut behind = pin!(caller.call("wait", "behind"));
        assert!(futures_util::poll!(&mut behind).is_pending());
        gate.unblock(2);
        assert_eq!(ahead.await.unwrap(), "ahead");
        assert_eq!(behind.await.unwrap(), "behind");
        wait_until_idle().await;
        assert_eq!(gate.entered.count(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_polled_is_never_made() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        drop(caller.call("wait", "x"));
        drop(caller.stream("wait", "x"));
        drop(caller.call_all("wait", ["x"], 1));
        wait_until_idle().await;
        assert_eq!((gate.entered.count(), caller.client().in_flight()), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_callers_handlers_are_dropped() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        client.bind(1, "wait").await;
        for slot in 0..5 {
            client.request(1, slot, b"x").await;
        }
        gate.entered.reaches(5).await;
        drop(client);
        gate.left.reaches(5).await;

        let node = Node::start(&inproc()).await;
        let (_attached, caller) = through_a_node(&node, &gate.on(Server::new())).await;
        let mut call = Box::pin(caller.call("wait", "x").into_future());
        assert!(futures_util::poll!(&mut call).is_pending());
        gate.entered.reaches(6).await;
        drop(call);
        drop(caller);
        gate.left.reaches(6).await;
        while node.handle.messaging().connection_count() > 1 {
            wait_until_idle().await;
        }
        assert_eq!(node.handle.messaging().pending_call_count(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_client_finishes_its_calls_and_disconnects() {
    bounded(async {
        let name = inproc();
        let listener = listen(&name);
        let (caller, mut server) = tokio::join!(
            async { Caller::connect(&name).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let (done, outcome) = tokio::sync::oneshot::channel();
        let report = move |outcome: Result<&[u8], &client::CallError>| {
            done.send(Bytes::copy_from_slice(outcome.unwrap())).unwrap();
        };
        caller.on_reply("slow", "x", report).unwrap();
        drop(caller);
        let request = server.next().await;
        assert_eq!(
            (request.header.kind, request.body()),
            (Kind::REQUEST, &b"x"[..])
        );
        wait_until_idle().await;
        server
            .message(
                Kind::REPLY,
                Flags::NONE,
                0,
                request.header.correlation,
                b"late",
            )
            .await;
        assert_eq!(outcome.await.unwrap(), "late");
        assert!(server.try_next().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn closing_a_client_ends_its_new_calls_as_unavailable() {
    bounded(over_every_transport(&echo(), async |caller: Caller| {
        let mut waiting = pin!(caller.client().close());
        let closed = futures_util::poll!(&mut waiting);
        let error = caller.call("echo", "x").await.unwrap_err();
        assert_eq!(error.code, client::ErrorCode::Unavailable);
        assert_eq!(error.sent, client::Sent::No);
        if closed == Poll::Pending {
            waiting.await;
        }
        assert_eq!(caller.client().state(), client::ConnectionState::Closed);
        let error = caller.one_way("echo", "x").await.unwrap_err();
        assert_eq!(error.code, client::ErrorCode::Unavailable);
        let error = caller
            .callbacks("echo", |_, _| {})
            .ready()
            .await
            .unwrap_err();
        assert_eq!(error.code, client::ErrorCode::Unavailable);
    }))
    .await;
}
