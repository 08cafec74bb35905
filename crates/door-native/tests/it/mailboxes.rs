use std::time::Duration;

use model::ErrorCode;
use node::StoreOptions;
use platform::Counter;
use wire::{Cast, Flags, Key, Kind, Stored};

use crate::agent::tag;
use crate::durable_node::{DurableNode, acknowledge, delivered, key, refuse, write, writer};

#[tokio::test]
async fn mailbox_write_is_acknowledged_once_durable() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    write(&mut writer, 0, key(1), b"hi").await;
    write(&mut writer, 1, key(2), b"ho").await;
    writer.expect_nothing().await;
    durable_node.sync();
    for slot in 0..2 {
        let frame = writer.next().await;
        assert_eq!(
            (frame.header.kind, frame.header.correlation),
            (Kind::REPLY, tag(slot))
        );
        let stored = Stored::decode(&frame.payload).unwrap();
        assert_eq!(
            (stored.offset, stored.is_duplicate),
            (u64::from(slot), false)
        );
    }
}

#[tokio::test]
async fn mailbox_message_is_delivered_once_durable() {
    let mut durable_node = DurableNode::new();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let mut writer = writer(&durable_node.bench, "").await;
    write(&mut writer, 0, key(1), b"hi").await;
    writer.expect_nothing().await;
    subscriber.expect_nothing().await;
    durable_node.sync();
    let (delivery, body, _) = delivered(&mut subscriber).await;
    assert_eq!(
        (delivery.offset, delivery.delivery, &body[..]),
        (0, 1, &b"hi"[..])
    );
    assert_eq!(delivery.written_ms, 1_700_000_000_000);
}

#[tokio::test]
async fn messages_wait_in_the_mailbox_for_the_first_subscriber() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    for number in 0..3 {
        durable_node
            .write(&mut writer, u32::from(number), key(number))
            .await;
    }
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    for offset in 0..3 {
        let (delivery, _, at) = delivered(&mut subscriber).await;
        assert_eq!((delivery.offset, delivery.delivery), (offset, 1));
        acknowledge(&mut subscriber, at).await;
    }
    subscriber.expect_nothing().await;
    let mailboxes = durable_node
        .bench
        .node
        .messaging()
        .mailboxes()
        .unwrap()
        .list("", "", 10)
        .unwrap();
    assert_eq!((&*mailboxes[0].name, mailboxes[0].messages), ("a/b/c", 0));
}

#[tokio::test]
async fn a_power_failure_loses_no_write_that_was_answered() {
    let mut durable_node = DurableNode::new();
    let mut alice = writer(&durable_node.bench, "a/b/alice").await;
    for number in 0..5 {
        durable_node
            .write(&mut alice, u32::from(number), key(number))
            .await;
    }
    write(&mut alice, 5, key(5), b"was not answered").await;
    alice.expect_nothing().await;
    let mut durable_node = durable_node.crash();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    for offset in 0..5 {
        let (delivery, body, at) = delivered(&mut subscriber).await;
        assert_eq!((delivery.offset, &body[..]), (offset, &b"hi"[..]));
        acknowledge(&mut subscriber, at).await;
    }
    // Its sender's retries are recognised, acknowledged or not.
    let mut alice = writer(&durable_node.bench, "a/b/alice").await;
    let stored = durable_node.write(&mut alice, 0, key(3)).await;
    assert_eq!((stored.offset, stored.is_duplicate), (3, true));
}

#[tokio::test]
async fn an_acknowledged_message_is_not_delivered_again_after_a_restart() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    for number in 0..2 {
        durable_node
            .write(&mut writer, u32::from(number), key(number))
            .await;
    }
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let (_, _, first) = delivered(&mut subscriber).await;
    delivered(&mut subscriber).await;
    acknowledge(&mut subscriber, first).await;
    subscriber.expect_nothing().await;
    durable_node.sync();
    let durable_node = durable_node.crash();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let (delivery, _, _) = delivered(&mut subscriber).await;
    assert_eq!((delivery.offset, delivery.delivery), (1, 2));
    subscriber.expect_nothing().await;
}

#[tokio::test]
async fn a_retried_write_is_a_duplicate_acknowledged_after_the_original_is_synced() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    write(&mut writer, 0, key(1), b"hi").await;
    write(&mut writer, 1, key(1), b"hi").await;
    writer.expect_nothing().await;
    durable_node.sync();
    for (slot, is_duplicate) in [(0, false), (1, true)] {
        let frame = writer.next().await;
        assert_eq!(frame.header.correlation, tag(slot));
        let stored = Stored::decode(&frame.payload).unwrap();
        assert_eq!((stored.offset, stored.is_duplicate), (0, is_duplicate));
    }
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    delivered(&mut subscriber).await;
    subscriber.expect_nothing().await;
    assert_eq!(
        durable_node.bench.node.counters().get(Counter::Duplicates),
        1
    );
}

#[tokio::test]
async fn messages_of_a_lost_subscriber_are_redelivered_to_another_at_once() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    let mut first = durable_node.bench.subscriber("a/b/c/1").await;
    assert_eq!(delivered(&mut first).await.0.delivery, 1);
    let mut second = durable_node.bench.subscriber("a/b/c/2").await;
    second.expect_nothing().await;
    drop(first);
    assert_eq!(delivered(&mut second).await.0.delivery, 2);
}

#[tokio::test]
async fn an_unacknowledged_message_is_redelivered_to_another_subscriber_after_its_timeout() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    let mut first = durable_node.bench.subscriber("a/b/c/1").await;
    let (_, _, at) = delivered(&mut first).await;
    let mut second = durable_node.bench.subscriber("a/b/c/2").await;
    durable_node.bench.clock.advance_ms(29_999);
    durable_node.bench.node.sweep();
    second.expect_nothing().await;
    durable_node.bench.clock.advance_ms(1);
    durable_node.bench.node.sweep();
    let cancel = first.next().await;
    assert_eq!(
        (cancel.header.kind, cancel.header.correlation),
        (Kind::CANCEL, at)
    );
    let (delivery, _, at) = delivered(&mut second).await;
    assert_eq!(delivery.delivery, 2);
    acknowledge(&mut second, at).await;
    second.expect_nothing().await;
    // What the first one says now is too late, and changes nothing.
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .list("", "", 10)
            .unwrap()[0]
            .messages,
        0
    );
}

#[tokio::test]
async fn a_refused_message_is_redelivered_after_a_delay_without_blocking_others() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    for number in 0..2 {
        durable_node
            .write(&mut writer, u32::from(number), key(number))
            .await;
    }
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let (_, _, first) = delivered(&mut subscriber).await;
    let (_, _, second) = delivered(&mut subscriber).await;
    refuse(&mut subscriber, first, 0).await;
    acknowledge(&mut subscriber, second).await;
    subscriber.expect_nothing().await;
    durable_node.bench.clock.advance_ms(999);
    durable_node.bench.node.sweep();
    subscriber.expect_nothing().await;
    durable_node.bench.clock.advance_ms(1);
    durable_node.bench.node.sweep();
    let (delivery, _, at) = delivered(&mut subscriber).await;
    assert_eq!((delivery.offset, delivery.delivery), (0, 2));
    refuse(&mut subscriber, at, 50).await;
    subscriber.expect_nothing().await;
    durable_node.bench.clock.advance_ms(50);
    durable_node.bench.node.sweep();
    assert_eq!(delivered(&mut subscriber).await.0.delivery, 3);
}

#[tokio::test]
async fn messages_of_one_sender_go_to_one_instance_in_order() {
    let mut durable_node = DurableNode::new();
    let mut first = durable_node.bench.subscriber("a/b/c/1").await;
    let mut second = durable_node.bench.subscriber("a/b/c/2").await;
    let mut alice = writer(&durable_node.bench, "a/b/alice").await;
    for number in 0..6 {
        durable_node
            .write(&mut alice, u32::from(number), key(number))
            .await;
    }
    let mut bob = writer(&durable_node.bench, "a/b/bob").await;
    let of_bob = durable_node.write(&mut bob, 0, key(9)).await.offset;
    // Bob's may be with either of them.
    let (mut with_first, mut with_second) = (Vec::new(), Vec::new());
    while with_first.len() + with_second.len() < 7 {
        tokio::select! {
            (delivery, ..) = delivered(&mut first) => with_first.push(delivery.offset),
            (delivery, ..) = delivered(&mut second) => with_second.push(delivery.offset),
        }
    }
    let of_alice = |mut offsets: Vec<u64>| {
        offsets.retain(|offset| *offset != of_bob);
        offsets
    };
    let (with_first, with_second) = (of_alice(with_first), of_alice(with_second));
    let (all, none) = match with_first.is_empty() {
        true => (with_second, with_first),
        false => (with_first, with_second),
    };
    assert!(none.is_empty(), "{all:?} and {none:?}");
    assert!(all.is_sorted(), "{all:?}");
    first.expect_nothing().await;
    second.expect_nothing().await;
}

#[tokio::test]
async fn an_undelivered_message_expires_after_its_ttl() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    let short = Key {
        ttl_ms: 500,
        ..key(1)
    };
    durable_node.write(&mut writer, 0, short).await;
    durable_node.write(&mut writer, 1, key(2)).await;
    durable_node.bench.clock.advance_ms(500);
    durable_node.bench.node.sweep();
    assert_eq!(durable_node.bench.node.counters().get(Counter::Expired), 1);
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    assert_eq!(delivered(&mut subscriber).await.0.offset, 1);
    subscriber.expect_nothing().await;
}

#[tokio::test]
async fn the_ttl_of_a_write_is_capped_by_the_node() {
    let options = StoreOptions {
        mailboxes: messaging::mailboxes::Options {
            ttl: Duration::from_secs(1),
            ..messaging::mailboxes::Options::default()
        },
        ..StoreOptions::default()
    };
    let mut durable_node = DurableNode::with(options);
    let mut writer = writer(&durable_node.bench, "").await;
    let long = Key {
        ttl_ms: 60_000,
        ..key(1)
    };
    durable_node.write(&mut writer, 0, long).await;
    durable_node.bench.clock.advance_ms(1_000);
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    subscriber.expect_nothing().await;
}

#[tokio::test]
async fn a_full_mailbox_is_busy_and_an_acknowledgement_makes_room() {
    let options = StoreOptions {
        mailboxes: messaging::mailboxes::Options {
            messages_max: 2,
            ..messaging::mailboxes::Options::default()
        },
        ..StoreOptions::default()
    };
    let mut durable_node = DurableNode::with(options);
    let mut writer = writer(&durable_node.bench, "").await;
    for number in 0..2 {
        durable_node
            .write(&mut writer, u32::from(number), key(number))
            .await;
    }
    write(&mut writer, 2, key(2), b"hi").await;
    let refused = writer.next().await;
    let failure = refused.failure();
    assert_eq!(
        (failure.code, failure.retry_after_ms),
        (ErrorCode::Busy, 1_000)
    );
    assert!(
        failure.message.contains("2 unacknowledged"),
        "{}",
        failure.message
    );
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let (_, _, at) = delivered(&mut subscriber).await;
    delivered(&mut subscriber).await;
    acknowledge(&mut subscriber, at).await;
    subscriber.expect_nothing().await;
    assert!(
        !durable_node
            .write(&mut writer, 2, key(2))
            .await
            .is_duplicate
    );
}

#[tokio::test]
async fn unacknowledged_deliveries_are_limited_by_in_flight_max() {
    let options = StoreOptions {
        mailboxes: messaging::mailboxes::Options {
            in_flight_max: 2,
            ..messaging::mailboxes::Options::default()
        },
        ..StoreOptions::default()
    };
    let mut durable_node = DurableNode::with(options);
    let mut writer = writer(&durable_node.bench, "").await;
    for number in 0..3 {
        durable_node
            .write(&mut writer, u32::from(number), key(number))
            .await;
    }
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let (_, _, at) = delivered(&mut subscriber).await;
    delivered(&mut subscriber).await;
    subscriber.expect_nothing().await;
    acknowledge(&mut subscriber, at).await;
    assert_eq!(delivered(&mut subscriber).await.0.offset, 2);
}

#[tokio::test]
async fn a_message_of_a_disconnected_writer_is_delivered_by_the_sweep() {
    let mut durable_node = DurableNode::new();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let mut writer = writer(&durable_node.bench, "").await;
    write(&mut writer, 0, key(1), b"hi").await;
    writer.expect_nothing().await;
    drop(writer);
    while durable_node.bench.node.messaging().connection_count() > 1 {
        tokio::task::yield_now().await;
    }
    durable_node.sync();
    subscriber.expect_nothing().await;
    durable_node.bench.node.sweep();
    delivered(&mut subscriber).await;
}

#[tokio::test]
async fn an_idle_mailbox_is_unloaded_and_loaded_again_on_use() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    let loaded = |durable_node: &DurableNode| {
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .loaded_count()
    };
    assert_eq!(loaded(&durable_node), 1);
    durable_node.bench.clock.advance_ms(9_999);
    assert!(durable_node.bench.node.sweep());
    assert_eq!(loaded(&durable_node), 1);
    durable_node.bench.clock.advance_ms(1);
    assert!(!durable_node.bench.node.sweep());
    assert_eq!(loaded(&durable_node), 0);
    let stored = durable_node.write(&mut writer, 1, key(1)).await;
    assert!(stored.is_duplicate);
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    delivered(&mut subscriber).await;
    // With a message out there it stays.
    durable_node.bench.clock.advance_ms(10_000);
    durable_node.bench.node.sweep();
    assert_eq!(loaded(&durable_node), 1);
}

#[tokio::test]
async fn acknowledged_messages_are_deleted_except_for_their_newest_ids() {
    let mut durable_node = DurableNode::new();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let mut writer = writer(&durable_node.bench, "").await;
    for number in 0..3_000 {
        write(&mut writer, number % 64, id(number), b"hi").await;
        if number % 64 == 63 || number == 2_999 {
            writer.expect_nothing_but_credit().await;
            durable_node.sync();
            for _ in 0..=number % 64 {
                let (_, _, at) = delivered(&mut subscriber).await;
                acknowledge(&mut subscriber, at).await;
            }
            subscriber.expect_nothing().await;
        }
    }
    durable_node.sync();
    let mut durable_node = durable_node.crash();
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .list("", "", 10)
            .unwrap()[0]
            .messages,
        0
    );
    let mut writer = crate::durable_node::writer(&durable_node.bench, "").await;
    assert!(
        durable_node
            .write(&mut writer, 0, id(2_999 - 1_023))
            .await
            .is_duplicate
    );
    assert!(
        !durable_node
            .write(&mut writer, 0, id(2_999 - 1_024))
            .await
            .is_duplicate
    );
}

#[tokio::test]
async fn a_failed_disk_makes_a_write_unconfirmed_and_refuses_the_next() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    write(&mut writer, 1, key(2), b"hi").await;
    writer.expect_nothing().await;
    durable_node
        .disk
        .fail_always(journal::disk::simulated::Fault::Broken, |_| true);
    durable_node.sync();
    let frame = writer.next().await;
    let failure = frame.failure();
    assert_eq!((failure.code, failure.sent), (ErrorCode::Unconfirmed, true));
    write(&mut writer, 2, key(3), b"hi").await;
    let refused = writer.next().await;
    assert_eq!(refused.failure().code, ErrorCode::Unavailable);
    assert!(
        durable_node
            .bench
            .node
            .health()
            .unwrap()
            .unhealthy()
            .is_some()
    );
}

#[tokio::test]
async fn instances_and_the_nodes_own_names_have_no_mailbox() {
    let durable_node = DurableNode::new();
    let mut writer = durable_node.bench.agent("").await;
    for (route, name, code) in [
        (1, "a/b/c/1", ErrorCode::InvalidArgument),
        (2, "telpher/system/x", ErrorCode::Denied),
        (3, "a//c", ErrorCode::InvalidArgument),
    ] {
        writer.bind(route, name, Cast::Any).await;
        let correlation = tag(u32::from(route) - 1);
        writer
            .message(Kind::WRITE, Flags::NONE, route, correlation, b"x")
            .await;
        assert_eq!(writer.next().await.failure().code, code, "{name}");
    }
    writer.bind(4, "a/b/c", Cast::All).await;
    writer
        .message(Kind::WRITE, Flags::NONE, 4, tag(3), b"x")
        .await;
    assert_eq!(
        writer.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
}

#[tokio::test]
async fn a_write_without_a_key_is_stored_and_delivered() {
    let mut durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    writer
        .message(Kind::WRITE, Flags::NONE, 1, tag(0), b"plain")
        .await;
    let frame = durable_node.answer(&mut writer).await;
    assert_eq!(Stored::decode(&frame.payload).unwrap().offset, 0);
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    assert_eq!(delivered(&mut subscriber).await.1, b"plain");
}

#[tokio::test]
async fn truncated_mailbox_key_is_a_protocol_error() {
    let durable_node = DurableNode::new();
    let mut writer = writer(&durable_node.bench, "").await;
    writer
        .message(Kind::WRITE, Flags::KEYED, 1, tag(0), b"too short")
        .await;
    assert_eq!(writer.next().await.failure().code, ErrorCode::Protocol);
}

/// More bytes than may wait for the disk, and more writes.
const FLOODS: [(u32, usize); 2] = [(300, 40_000), (12_000, 10)];

#[tokio::test]
async fn a_writer_with_too_many_pending_writes_is_not_read() {
    for (count, size) in FLOODS {
        let mut durable_node = DurableNode::new();
        let writer = writer(&durable_node.bench, "").await;
        let flooding = tokio::spawn(async move {
            let (mut writer, body) = (writer, vec![7; size]);
            for number in 0..count {
                write(&mut writer, number, id(number), &body).await;
            }
            writer
        });
        let taken =
            |durable_node: &DurableNode| durable_node.bench.node.counters().get(Counter::Writes);
        let bound = match size {
            10 => 8_192,
            _ => (8 << 20) / size as u64,
        };
        while taken(&durable_node) < bound {
            tokio::task::yield_now().await;
        }
        // Every task that can run has run.
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        let most = bound + (256 << 10) / size.max(50) as u64 + 1;
        assert!(
            taken(&durable_node) <= most,
            "{} of {most}",
            taken(&durable_node)
        );

        while !flooding.is_finished() {
            durable_node.sync();
            tokio::task::yield_now().await;
        }
        let mut writer = flooding.await.unwrap();
        for _ in 0..count {
            durable_node.sync();
            while writer.next().await.header.kind != Kind::REPLY {}
        }
    }
}

fn id(number: u32) -> Key {
    Key {
        id: u128::from(number).to_le_bytes(),
        ttl_ms: 0,
    }
}
