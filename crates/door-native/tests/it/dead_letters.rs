//! Dead letters: messages that no subscriber acknowledges, and the log behind them.

use std::time::Duration;

use journal::{ReadLimit, ShardId};
use messaging::mailboxes::Part;
use node::StoreOptions;
use platform::Counter;
use store::{DIRECTORY, NamedStream};

use crate::agent::Agent;
use crate::durable_node::{DurableNode, acknowledge, delivered, key, refuse, write, writer};

/// A node on which a message goes out twice.
fn node_with_two_deliveries() -> DurableNode {
    DurableNode::with(StoreOptions {
        mailboxes: messaging::mailboxes::Options {
            deliveries_max: 2,
            ..messaging::mailboxes::Options::default()
        },
        ..StoreOptions::default()
    })
}

/// Refuses the message at that offset as often as it comes.
async fn refuse_twice(durable_node: &DurableNode, subscriber: &mut Agent, offset: u64) {
    for number in 1..=2 {
        let (delivery, _, at) = delivered(subscriber).await;
        assert_eq!((delivery.offset, delivery.delivery), (offset, number));
        refuse(subscriber, at, 1).await;
        subscriber.expect_nothing().await;
        durable_node.bench.clock.advance_ms(1);
        durable_node.bench.node.sweep();
    }
    subscriber.expect_nothing().await;
}

fn count(durable_node: &DurableNode) -> (usize, usize) {
    let mailboxes = durable_node
        .bench
        .node
        .messaging()
        .mailboxes()
        .unwrap()
        .list("", "", 10)
        .unwrap();
    (mailboxes[0].messages, mailboxes[0].dead)
}

#[tokio::test]
async fn a_message_refused_deliveries_max_times_becomes_a_dead_letter() {
    let mut durable_node = node_with_two_deliveries();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    refuse_twice(&durable_node, &mut subscriber, 0).await;
    assert_eq!(count(&durable_node), (0, 1));
    assert_eq!(
        durable_node.bench.node.counters().get(Counter::DeadLetters),
        1
    );
    durable_node.write(&mut writer, 1, key(2)).await;
    let (delivery, _, at) = delivered(&mut subscriber).await;
    assert_eq!(delivery.delivery, 1);
    acknowledge(&mut subscriber, at).await;
    subscriber.expect_nothing().await;
    // A retry of the write is told that it is there.
    assert!(
        durable_node
            .write(&mut writer, 2, key(1))
            .await
            .is_duplicate
    );
    let node = &durable_node.bench.node;
    let dead = node
        .messaging()
        .mailboxes()
        .unwrap()
        .messages("a/b/c", Part::Dead, 0, 10)
        .unwrap();
    assert_eq!((dead.len(), dead[0].offset, dead[0].deliveries), (1, 0, 2));
    assert_eq!((dead[0].state, dead[0].cause), ("dead", Some("refused")));
    assert_eq!(
        node.messaging()
            .mailboxes()
            .unwrap()
            .messages("a/b/c", Part::Live, 0, 10)
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn a_dead_letter_survives_a_power_failure_and_is_redelivered_on_retry() {
    let mut durable_node = node_with_two_deliveries();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    refuse_twice(&durable_node, &mut subscriber, 0).await;
    durable_node.sync();
    let mut durable_node = durable_node.crash();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    subscriber.expect_nothing().await;
    assert_eq!(count(&durable_node), (0, 1));
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .retry("a/b/c", Some(7)),
        Ok(0)
    );
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .retry("a/b/c", Some(0)),
        Ok(1)
    );
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .retry("a/b/c", None),
        Ok(0)
    );
    durable_node.sync();
    let durable_node = durable_node.crash();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    for number in [3, 4] {
        let (delivery, _, at) = delivered(&mut subscriber).await;
        assert_eq!((delivery.offset, delivery.delivery), (0, number));
        refuse(&mut subscriber, at, 1).await;
        subscriber.expect_nothing().await;
        durable_node.bench.clock.advance_ms(1);
        durable_node.bench.node.sweep();
    }
    assert_eq!(count(&durable_node), (0, 1));
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .purge("a/b/c", Part::Live),
        Ok(0)
    );
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .purge("a/b/c", Part::Dead),
        Ok(1)
    );
    assert_eq!(count(&durable_node), (0, 0));
}

#[tokio::test]
async fn a_dead_letter_expires_like_any_message() {
    let mut durable_node = DurableNode::with(StoreOptions {
        mailboxes: messaging::mailboxes::Options {
            deliveries_max: 1,
            ttl: Duration::from_secs(5),
            ..messaging::mailboxes::Options::default()
        },
        ..StoreOptions::default()
    });
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    let (_, _, at) = delivered(&mut subscriber).await;
    refuse(&mut subscriber, at, 0).await;
    subscriber.expect_nothing().await;
    assert_eq!(count(&durable_node), (0, 1));
    durable_node.bench.clock.advance_ms(5_000);
    durable_node.bench.node.sweep();
    assert_eq!(count(&durable_node), (0, 0));
}

/// Bytes of a message that others are written behind.
static BODY: [u8; 20_000] = [7; 20_000];

/// Has messages written and acknowledged, more than 3 MiB of them.
async fn write_and_acknowledge(
    durable_node: &mut DurableNode,
    writer: &mut Agent,
    worker: &mut Agent,
) {
    for number in 1..=160 {
        write(writer, number % 8, key(number as u8), &BODY).await;
        writer.expect_nothing_but_credit().await;
        durable_node.sync();
        let (_, _, at) = delivered(worker).await;
        acknowledge(worker, at).await;
        worker.expect_nothing().await;
    }
    durable_node.sync();
}

/// The oldest record of the first mailbox.
fn start(durable_node: &DurableNode) -> u64 {
    let limit = ReadLimit {
        records: 100,
        bytes: 1 << 20,
    };
    let journal = &durable_node.journal;
    let first_mailbox = |shard| {
        let read = journal.read(shard, DIRECTORY, 0, limit).unwrap();
        let records = read.records.iter();
        let mut named =
            records.filter_map(|it| NamedStream::decode(shard, it.offset, it.tag, &it.payload));
        named.find(|it| it.kind == "mailbox")
    };
    let mut shards = (0..journal.shard_count()).map(ShardId);
    let mailbox = shards.find_map(first_mailbox).unwrap();
    let stream = durable_node.journal.stream(mailbox.shard, mailbox.stream);
    stream.unwrap().start
}

#[tokio::test]
async fn an_unacknowledged_message_does_not_hold_back_trimming_of_later_ones() {
    let mut durable_node = DurableNode::new();
    let mut worker = durable_node.bench.subscriber("a/b/c/1").await;
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(0)).await;
    let (first, _, at) = delivered(&mut worker).await;
    refuse(&mut worker, at, 3_600_000).await;
    worker.expect_nothing().await;
    durable_node.bench.clock.advance_ms(5);
    write_and_acknowledge(&mut durable_node, &mut writer, &mut worker).await;
    assert!(start(&durable_node) > 100, "{}", start(&durable_node));

    let durable_node = durable_node.crash();
    let mut worker = durable_node.bench.subscriber("a/b/c/2").await;
    let (again, body, at) = delivered(&mut worker).await;
    assert_eq!(
        (again.offset, again.delivery, &body[..]),
        (0, 2, &b"hi"[..])
    );
    assert_eq!(again.written_ms, first.written_ms);
    acknowledge(&mut worker, at).await;
    worker.expect_nothing().await;
    assert_eq!(count(&durable_node), (0, 0));
}
