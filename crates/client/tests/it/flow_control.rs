//! One-way messages through a node to subscribers that are slower than the senders.

use client::{Cast, Client, ErrorCode, Subscription};
use model::ByteSize;

use crate::support::{Node, bounded, inproc, name, wait_until_idle};

/// A subscriber with a window of this many messages.
async fn subscriber(node: &Node, window: u32) -> (Client, Subscription) {
    let builder = Client::builder().window(window, ByteSize::mebibytes(64));
    let client = builder.connect(node.address()).await.unwrap();
    let subscription = client.subscribe(&name()).await.unwrap();
    (client, subscription)
}

/// Counts the messages from one sender to a subscriber with a window of `window` messages, with
/// `credit` messages of credit from the node.
async fn check_flood(credit: u32, window: u32, count: usize) {
    bounded(async {
        let limits = messaging::Limits {
            credit_messages: credit,
            ..messaging::Limits::default()
        };
        let options = door_native::Options::default();
        let node = Node::start_within(limits, &inproc(), options, None).await;
        let (_client, mut subscription) = subscriber(&node, window).await;
        let sender = node.client().await;
        let name = name();
        let send = async {
            for number in 0..count {
                sender
                    .send(&name, Cast::Any, number.to_string())
                    .await
                    .unwrap();
            }
        };
        let read = async {
            for number in 0..count {
                assert_eq!(subscription.next().await.unwrap().body, number.to_string());
                if number % 100 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::join!(read, send);
        assert_eq!(node.handle.counters().get(platform::Counter::Dropped), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn flood_within_the_window_is_lossless() {
    check_flood(messaging::Limits::default().credit_messages, 16_384, 16_000).await;
}

#[tokio::test(start_paused = true)]
async fn awaited_flood_is_lossless_with_half_window_grants() {
    check_flood(8_192, 16_384, 200_000).await;
    check_flood(32, 64, 50_000).await;
}

#[tokio::test(start_paused = true)]
async fn awaited_flood_is_lossless_with_default_windows() {
    check_flood(
        messaging::Limits::default().credit_messages,
        16_384,
        200_000,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn credit_is_returned_when_envelopes_are_received() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let (_client, mut subscription) = subscriber(&node, 8).await;
        let sender = node.client().await;
        let receipt = |count: u32| {
            let sender = &sender;
            async move {
                let mut delivered = 0;
                for _ in 0..count {
                    let receipt = sender.send_reported(&name(), Cast::All, "x").await.unwrap();
                    assert_eq!(receipt.delivered + receipt.dropped, 1);
                    delivered += receipt.delivered;
                }
                delivered
            }
        };
        for _ in 0..20 {
            assert_eq!(receipt(4).await, 4);
            for _ in 0..4 {
                assert_eq!(subscription.next().await.unwrap().body, "x");
            }
            wait_until_idle().await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn send_waits_for_a_full_subscriber_and_try_send_is_busy() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let (_client, mut subscription) = subscriber(&node, 8).await;
        let sender = node.client().await;
        let name = name();
        let mut accepted = 0;
        let error = loop {
            match sender.try_send(&name, Cast::Any, accepted.to_string()) {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
            // Time for the node's notice that the subscriber is more than half full.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            assert!(accepted < 1000, "never busy");
        };
        assert_eq!(
            (error.code, error.sent),
            (ErrorCode::Busy, client::Sent::No)
        );
        assert!(accepted <= 8, "{accepted}");
        let mut waiting = Box::pin(sender.send(&name, Cast::Any, "waited").into_future());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        for number in 0..accepted {
            assert_eq!(subscription.next().await.unwrap().body, number.to_string());
        }
        waiting.await.unwrap();
        assert_eq!(subscription.next().await.unwrap().body, "waited");
        assert_eq!(node.handle.counters().get(platform::Counter::Dropped), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stopped_subscriber_pauses_its_sender_only_briefly() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let (_stopped, _unread) = subscriber(&node, 8).await;
        let sender = node.client().await;
        let name = name();
        let began = tokio::time::Instant::now();
        for number in 0..1000 {
            sender
                .send(&name, Cast::Any, number.to_string())
                .await
                .unwrap();
            wait_until_idle().await;
        }
        // 1,000 pauses of a millisecond plus the limit of about 350 ms in
        // `docs/reference/protocol.md`.
        assert!(
            began.elapsed() < std::time::Duration::from_secs(3),
            "{:?}",
            began.elapsed()
        );
        // Messages above the window are dropped and counted.
        let delivered = node.handle.counters().get(platform::Counter::Delivered);
        let dropped = node.handle.counters().get(platform::Counter::Dropped);
        assert!(delivered <= 8, "{delivered}");
        assert_eq!(delivered + dropped, 1000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn anycast_send_skips_a_full_instance() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let (_stopped, _unread) = subscriber(&node, 4).await;
        let (_client, mut reads) = subscriber(&node, 10_000).await;
        let sender = node.client().await;
        let mut delivered = 0;
        for number in 0..1000 {
            let body = number.to_string();
            let receipt = sender
                .send_reported(&name(), Cast::Any, body)
                .await
                .unwrap();
            delivered += receipt.delivered;
        }
        assert_eq!(delivered, 1000);
        for _ in 0..1000 - 4 {
            reads.next().await.unwrap();
        }
        assert_eq!(node.handle.counters().get(platform::Counter::Dropped), 0);
    })
    .await;
}
