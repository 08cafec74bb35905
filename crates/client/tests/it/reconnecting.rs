//! Reconnecting after a lost connection.

use std::time::Duration;

use client::{Builder, Cast, Client, ConnectionState, ErrorCode, RetryPolicy, SubscribeOptions};

use crate::support::{Node, Probe, bounded, echo, inproc, name, wait_until_idle};

fn client_with_short_pauses() -> Builder {
    Client::builder().reconnect(Duration::from_millis(1), Duration::from_millis(20))
}

fn is_connected(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected { .. })
}

fn is_down(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Reconnecting { .. })
}

#[tokio::test]
async fn calls_and_subscriptions_resume_after_a_node_restart() {
    bounded(async {
        let mut node = Node::start("tcp://127.0.0.1:0").await;
        let address = node.address().to_owned();
        let beside = client_with_short_pauses().connect(&address).await.unwrap();
        let asking = SubscribeOptions::new().with_source();
        let mut subscription = beside.subscribe_with(&name(), asking).await.unwrap();
        let full_name = subscription.name().to_owned();
        let other = client::Name::parse("acme/test/echo").unwrap();
        let attached = echo().attach(&beside, &other).await.unwrap();
        let named = client_with_short_pauses().name("acme/test/sender").unwrap();
        let sender = named.connect(&address).await.unwrap();
        for round in 0..5 {
            let policy = RetryPolicy::attempts(u32::MAX);
            let caller = sender.caller(other.as_str()).unwrap();
            let reply = caller.call("echo", "x").retry(policy.idempotent()).await;
            assert_eq!(reply.unwrap(), "x", "round {round}");
            // The call shows that the sender is connected again; the subscription belongs to the
            // callee.
            let delivered = sender.write_to_memory(&name(), "x").await.unwrap();
            assert_eq!(delivered, 1);
            let envelope = subscription.next().await.unwrap();
            assert_eq!(
                (envelope.name(), &envelope.body[..]),
                (full_name.as_str(), &b"x"[..])
            );
            assert_eq!(envelope.source(), Some("acme/test/sender"));

            let mut events = beside.events();
            assert!(is_connected(&events.current()));
            node.kill().await;
            let down = events.wait_for(is_down).await.unwrap();
            let ConnectionState::Reconnecting { reason, .. } = down else {
                panic!("{down:?}");
            };
            assert!(!reason.is_empty());
            node = Node::start(&address).await;
            events.wait_for(is_connected).await.unwrap();
        }
        assert_eq!(subscription.ended(), None);
        assert_eq!(
            attached
                .name()
                .split('/')
                .take(3)
                .collect::<Vec<_>>()
                .join("/"),
            other.as_str()
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connection_events_arrive_in_order() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let address = node.address().to_owned();
        let client = client_with_short_pauses().connect(&address).await.unwrap();
        let mut events = client.events();
        let connected = client.state();
        assert!(is_connected(&connected), "{connected:?}");
        node.kill().await;
        let down = events.next().await.unwrap();
        assert!(is_down(&down), "{down:?}");
        let attempted = events.wait_for(|state| match state {
            ConnectionState::Reconnecting { attempt, .. } => *attempt >= 5,
            _ => false,
        });
        attempted.await.unwrap();
        let _node = Node::start(&address).await;
        assert_eq!(events.wait_for(is_connected).await.unwrap(), connected);
        client.close().await;
        assert_eq!(events.next().await, Some(ConnectionState::Closed));
        assert_eq!(client.state(), ConnectionState::Closed);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pauses_between_attempts_grow_and_are_bounded() {
    bounded(async {
        let attempts = Probe::default();
        let node = Node::start(&inproc()).await;
        let counted = attempts.clone();
        let pauses = (Duration::from_millis(100), Duration::from_secs(2));
        let builder = Client::builder().reconnect(pauses.0, pauses.1).seed(7);
        let client = builder.connector(move |address| {
            counted.add(1);
            let address = address.clone();
            Box::pin(async move { net::connect(&address, None).await })
        });
        let client = client.connect(node.address()).await.unwrap();
        node.kill().await;
        let began = tokio::time::Instant::now();
        attempts.reaches(1 + 12).await;
        let elapsed = began.elapsed();
        // The maximum pauses add up to 0.1 + 0.2 + 0.4 + 0.8 + 1.6 + 7 · 2 s.
        assert!(elapsed <= Duration::from_millis(17_100), "{elapsed:?}");
        assert!(elapsed >= Duration::from_millis(1_000), "{elapsed:?}");
        client.close().await;
        let count = attempts.count();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(attempts.count(), count);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn calls_made_while_disconnected_wait_for_the_next_connection() {
    bounded(async {
        let address = inproc();
        let node = Node::start(&address).await;
        let beside = client_with_short_pauses().connect(&address).await.unwrap();
        let _attached = echo().attach(&beside, &name()).await.unwrap();
        let client = client_with_short_pauses().connect(&address).await.unwrap();
        node.kill().await;
        let mut events = client.events();
        events.wait_for(is_down).await.unwrap();
        let caller = client.caller(name().as_str()).unwrap();
        let policy = RetryPolicy::attempts(u32::MAX);
        let mut call = Box::pin(caller.call("echo", "waited").retry(policy).into_future());
        assert!(futures_util::poll!(&mut call).is_pending());
        let name = name();
        let mut subscribing = Box::pin(client.subscribe(&name));
        assert!(futures_util::poll!(&mut subscribing).is_pending());
        let mut sending = Box::pin(client.send(&name, Cast::Any, "x").into_future());
        assert!(futures_util::poll!(&mut sending).is_pending());
        wait_until_idle().await;
        let _node = Node::start(&address).await;
        assert_eq!(call.await.unwrap(), "waited");
        subscribing.await.unwrap();
        sending.await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_dropped_while_disconnected_is_not_renewed() {
    bounded(async {
        let address = inproc();
        let node = Node::start(&address).await;
        let client = client_with_short_pauses().connect(&address).await.unwrap();
        let kept = client.subscribe(&name()).await.unwrap();
        let dropped = client.subscribe(&name()).await.unwrap();
        node.kill().await;
        client.events().wait_for(is_down).await.unwrap();
        drop(dropped);
        let node = Node::start(&address).await;
        client.events().wait_for(is_connected).await.unwrap();
        wait_until_idle().await;
        assert_eq!(node.handle.messaging().subscription_count(), 1);
        let sender = node.client().await;
        let receipt = sender.send_reported(&name(), Cast::All, "x").await.unwrap();
        assert_eq!(receipt.delivered, 1);
        assert_eq!(kept.ended(), None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reconnecting_client_takes_back_its_instance() {
    bounded(async {
        let address = inproc();
        let node = Node::start(&address).await;
        let instance = name().with_instance("main").unwrap();
        // This client reconnects late.
        let slow = Client::builder()
            .reconnect(Duration::from_secs(2), Duration::from_secs(4))
            .seed(1);
        let slow = slow.connect(&address).await.unwrap();
        let mut first = slow.subscribe(&instance).await.unwrap();
        node.kill().await;
        slow.events().wait_for(is_down).await.unwrap();
        let node = Node::start(&address).await;
        let client_with_short_pauses = node.client().await;
        let mut second = client_with_short_pauses.subscribe(&instance).await.unwrap();
        slow.events().wait_for(is_connected).await.unwrap();
        // A renewed subscription replaces the other one, so exactly one remains.
        assert!(second.next().await.is_none());
        assert_eq!(second.ended(), Some(ErrorCode::Replaced));
        let sender = node.client().await;
        sender.send(&instance, Cast::Any, "x").await.unwrap();
        assert_eq!(first.next().await.unwrap().body, "x");
    })
    .await;
}
