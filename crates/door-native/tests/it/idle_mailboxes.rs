//! Expiry in idle mailboxes.

use journal::ShardId;
use wire::{Cast, Key, Kind, Stored};

use crate::durable_node::{DurableNode, write};

const MINUTE_MS: u32 = 60_000;
const COUNT: u8 = 40;

/// Returns the number of records that all mailboxes have on disk.
fn records(durable_node: &DurableNode) -> u64 {
    let shards = 0..durable_node.journal.shard_count();
    let streams =
        shards.flat_map(|shard| durable_node.journal.streams(ShardId(shard), None, 1_000));
    // The directory is stream 0.
    let mailboxes = streams.filter(|(stream, _)| stream.0 > 0);
    mailboxes.map(|(_, state)| state.next - state.start).sum()
}

/// Starts a node with mailboxes of five messages each. All messages but those of the first mailbox
/// expire in a minute.
async fn start_node() -> DurableNode {
    let mut durable_node = DurableNode::new();
    let mut agent = durable_node.bench.agent("").await;
    for number in 0..COUNT {
        agent.bind(1, &format!("a/b/{number}"), Cast::Any).await;
        for message in 0..5 {
            let key = Key {
                id: [message; 16],
                ttl_ms: if number == 0 { 0 } else { MINUTE_MS },
            };
            write(&mut agent, 0, key, &[b'x'; 100]).await;
            let frame = durable_node.answer(&mut agent).await;
            assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
            assert!(!Stored::decode(&frame.payload).unwrap().is_duplicate);
        }
    }
    durable_node.crash()
}

/// Advances the clock by some minutes and sweeps as a shell does. Returns the largest number of
/// mailboxes in memory at one time.
fn pass_minutes(durable_node: &mut DurableNode, minutes: u64) -> usize {
    let mut loaded_max = 0;
    for _ in 0..minutes * 6 {
        durable_node.bench.clock.advance_ms(10_000);
        durable_node.bench.node.sweep();
        durable_node.sync();
        let mailboxes = durable_node.bench.node.messaging().mailboxes().unwrap();
        loaded_max = loaded_max.max(mailboxes.loaded_count());
    }
    loaded_max
}

#[tokio::test]
async fn expired_messages_of_idle_mailboxes_are_deleted_within_the_hour() {
    let mut durable_node = start_node().await;
    assert_eq!(records(&durable_node), 5 * u64::from(COUNT));
    let loaded_max = pass_minutes(&mut durable_node, 65);
    // What is left of each is one record, with the ids of its newest writes.
    assert_eq!(records(&durable_node), 5 + u64::from(COUNT) - 1);
    assert_eq!(
        durable_node
            .bench
            .node
            .counters()
            .get(platform::Counter::Expired),
        5 * u64::from(COUNT) - 5
    );
    // The first round goes through all of them at once, with so many in memory at a time.
    assert!((1..=16).contains(&loaded_max), "{loaded_max}");
    let mailboxes = durable_node
        .bench
        .node
        .messaging()
        .mailboxes()
        .unwrap()
        .list("a/b/", "", 100)
        .unwrap();
    let messages: Vec<_> = mailboxes.iter().map(|it| it.messages).collect();
    assert_eq!(messages.iter().sum::<usize>(), 5);
}

#[tokio::test]
async fn an_idle_mailbox_is_loaded_only_when_messages_in_it_can_expire() {
    let mut durable_node = start_node().await;
    pass_minutes(&mut durable_node, 65);
    assert_eq!(pass_minutes(&mut durable_node, 24 * 60), 0);
    // The first one's expire after a week.
    pass_minutes(&mut durable_node, 6 * 24 * 60 + 65);
    assert_eq!(records(&durable_node), u64::from(COUNT));
}
