//! Graceful shutdown of a server or a node.

use std::time::Duration;

use client::{Caller, Client, ConnectionState, ErrorCode, Server};
use wire::{Goaway, Kind};

use crate::support::{
    Bare, Gate, Node, WINDOW, bounded, echo, inproc, listen, name, through_a_node, wait_until_idle,
};

const TIME: Duration = Duration::from_secs(5);

fn is_draining_or_down(state: &ConnectionState) -> bool {
    matches!(
        state,
        ConnectionState::Draining { .. } | ConnectionState::Reconnecting { .. }
    )
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_running_calls_and_refuses_new_connections() {
    bounded(async {
        let gate = Gate::new();
        let server = gate.on(echo());
        let listening = server.listen(&inproc()).await.unwrap();
        let address = listening.address().to_owned();
        let caller = Caller::connect(&address).await.unwrap();
        let mut under_way = Box::pin(caller.call("wait", "under way").into_future());
        assert!(futures_util::poll!(&mut under_way).is_pending());
        gate.entered.reaches(1).await;
        let mut events = caller.client().events();
        let shutting_down = tokio::spawn(listening.shutdown(TIME));
        events.wait_for(is_draining_or_down).await.unwrap();

        // New calls wait for the next server; no client is connected to this one.
        let mut later = Box::pin(caller.call("echo", "later").into_future());
        assert!(futures_util::poll!(&mut later).is_pending());
        let refused = Caller::connect(&address).await.unwrap_err();
        assert!(
            matches!(refused, client::ConnectError::Io { .. }),
            "{refused:?}"
        );

        gate.unblock(1);
        assert_eq!(under_way.await.unwrap(), "under way");
        shutting_down.await.unwrap();
        let _next = server.listen(&address).await.unwrap();
        assert_eq!(later.await.unwrap(), "later");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn calls_cut_off_by_the_shutdown_limit_are_unconfirmed() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let call = caller.call("wait", "x").deadline(None);
        let shut_down = async {
            gate.entered.reaches(1).await;
            let began = tokio::time::Instant::now();
            listening.shutdown(TIME).await;
            assert!(began.elapsed() >= TIME && began.elapsed() < 2 * TIME);
        };
        let (outcome, ()) = tokio::join!(call, shut_down);
        assert_eq!(outcome.unwrap_err().code, ErrorCode::Unconfirmed);
        gate.left.reaches(1).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_callers_shuts_down_at_once() {
    bounded(async {
        let listening = echo().listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        let began = tokio::time::Instant::now();
        listening.shutdown(Duration::from_secs(3600)).await;
        assert!(began.elapsed() < Duration::from_secs(1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn draining_node_finishes_calls_and_new_ones_wait_for_its_restart() {
    bounded(async {
        let gate = Gate::new();
        let node = Node::start(&inproc()).await;
        let address = node.address().to_owned();
        let server = gate.on(echo());
        let (_attached, caller) = through_a_node(&node, &server).await;
        let mut under_way = Box::pin(caller.call("wait", "under way").into_future());
        assert!(futures_util::poll!(&mut under_way).is_pending());
        gate.entered.reaches(1).await;
        let mut events = caller.client().events();
        node.handle.messaging().drain(TIME.as_millis() as u32);
        events.wait_for(is_draining_or_down).await.unwrap();
        let policy = client::RetryPolicy::attempts(u32::MAX);
        let later = caller
            .call("echo", "later")
            .retry(policy)
            .deadline(4 * TIME);
        let mut later = Box::pin(later.into_future());
        assert!(futures_util::poll!(&mut later).is_pending());
        wait_until_idle().await;
        gate.unblock(1);
        assert_eq!(under_way.await.unwrap(), "under way");
        // All clients disconnect by themselves.
        while node.handle.messaging().connection_count() > 0 {
            wait_until_idle().await;
        }
        node.kill().await;
        let _next = Node::start(&address).await;
        assert_eq!(later.await.unwrap(), "later");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_goaway_redirects_the_client_to_another_address_at_once() {
    bounded(async {
        let (old, new) = (inproc(), inproc());
        let next = echo().listen(&new).await.unwrap();
        let listener = listen(&old);
        let (caller, mut server) = tokio::join!(
            async { Caller::connect(&old).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let mut under_way = Box::pin(caller.call("x", "under way").into_future());
        assert!(futures_util::poll!(&mut under_way).is_pending());
        let request = server.next().await;
        assert_eq!(request.header.kind, Kind::REQUEST);
        let goaway = Goaway {
            code: ErrorCode::Unavailable,
            drain_ms: 5000,
            address: next.address(),
            message: "over there",
        };
        server.frame(|out| goaway.encode(out)).await;
        let mut events = caller.client().events();
        let is_there = |state: &_| match state {
            ConnectionState::Connected { address, .. } => *address == new,
            _ => false,
        };
        events.wait_for(is_there).await.unwrap();
        assert_eq!(caller.call("echo", "there").await.unwrap(), "there");
        server
            .reply(request.header.correlation, b"from the old one")
            .await;
        assert_eq!(under_way.await.unwrap(), "from the old one");
        assert!(server.try_next().await.is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_completes_while_its_server_drains() {
    bounded(async {
        let server = Server::new().handle_stream("count", |_, items| async move {
            for number in 0..500 {
                items.send(number.to_string()).await?;
            }
            Ok(())
        });
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let mut items = caller.stream("count", "");
        assert_eq!(items.next().await.unwrap().unwrap(), "0");
        let shutting_down = tokio::spawn(listening.shutdown(TIME));
        let mut events = caller.client().events();
        events.wait_for(is_draining_or_down).await.unwrap();
        for number in 1..500 {
            assert_eq!(items.next().await.unwrap().unwrap(), number.to_string());
        }
        assert!(items.next().await.is_none());
        shutting_down.await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscriptions_move_to_the_next_node() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let address = node.address().to_owned();
        let beside = node.client().await;
        let mut subscription = beside.subscribe(&name()).await.unwrap();
        let full_name = subscription.name().to_owned();
        node.handle.messaging().drain(5000);
        let mut events = beside.events();
        events.wait_for(is_draining_or_down).await.unwrap();
        while node.handle.messaging().connection_count() > 0 {
            wait_until_idle().await;
        }
        node.kill().await;
        let next = Node::start(&address).await;
        while next.handle.messaging().subscription_count() == 0 {
            wait_until_idle().await;
        }
        let sender = Client::connect(&address).await.unwrap();
        sender
            .send(&name(), client::Cast::Any, "moved")
            .await
            .unwrap();
        let envelope = subscription.next().await.unwrap();
        assert_eq!(
            (&envelope.body[..], envelope.name()),
            (&b"moved"[..], full_name.as_str())
        );
    })
    .await;
}
