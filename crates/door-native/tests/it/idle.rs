//! Expiry in idle mailboxes.

use journal::ShardId;
use wire::{Cast, Key, Kind, Stored};

use crate::kept::{Kept, write};

const MINUTE_MS: u32 = 60_000;
const COUNT: u8 = 40;

/// Records that mailboxes have on disk, over all of them.
fn records(kept: &Kept) -> u64 {
    let shards = 0..kept.journal.shard_count();
    let streams = shards.flat_map(|shard| kept.journal.streams(ShardId(shard), None, 1_000));
    // The directory is stream 0.
    let mailboxes = streams.filter(|(stream, _)| stream.0 > 0);
    mailboxes.map(|(_, state)| state.next - state.start).sum()
}

/// A node that has just been started with mailboxes of five messages each, which expire in a minute
/// but for those of the first mailbox.
async fn started() -> Kept {
    let mut kept = Kept::new();
    let mut agent = kept.bench.agent("").await;
    for number in 0..COUNT {
        agent.bind(1, &format!("a/b/{number}"), Cast::Any).await;
        for message in 0..5 {
            let key = Key {
                id: [message; 16],
                ttl_ms: if number == 0 { 0 } else { MINUTE_MS },
            };
            write(&mut agent, 0, key, &[b'x'; 100]).await;
            let frame = kept.answer(&mut agent).await;
            assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
            assert!(!Stored::decode(&frame.payload).unwrap().is_duplicate);
        }
    }
    kept.crash()
}

/// Time passes, with the sweeps that a shell makes. Returns how many mailboxes were in memory at the
/// same time, at most.
fn pass_minutes(kept: &mut Kept, minutes: u64) -> usize {
    let mut loaded_max = 0;
    for _ in 0..minutes * 6 {
        kept.bench.clock.advance_ms(10_000);
        kept.bench.node.sweep();
        kept.sync();
        let mailboxes = kept.bench.node.mailboxes().unwrap();
        loaded_max = loaded_max.max(mailboxes.loaded_count());
    }
    loaded_max
}

#[tokio::test]
async fn expired_messages_of_idle_mailboxes_are_deleted_within_the_hour() {
    let mut kept = started().await;
    assert_eq!(records(&kept), 5 * u64::from(COUNT));
    let loaded_max = pass_minutes(&mut kept, 65);
    // What is left of each is one record, with the ids of its newest writes.
    assert_eq!(records(&kept), 5 + u64::from(COUNT) - 1);
    assert_eq!(
        kept.bench.node.counters().get(platform::Counter::Expired),
        5 * u64::from(COUNT) - 5
    );
    // The first round goes through all of them at once, with so many in memory at a time.
    assert!((1..=16).contains(&loaded_max), "{loaded_max}");
    let mailboxes = kept
        .bench
        .node
        .mailboxes()
        .unwrap()
        .list("a/b/", "", 100)
        .unwrap();
    let messages: Vec<_> = mailboxes.iter().map(|it| it.messages).collect();
    assert_eq!(messages.iter().sum::<usize>(), 5);
}

#[tokio::test]
async fn an_idle_mailbox_is_loaded_only_when_messages_in_it_can_expire() {
    let mut kept = started().await;
    pass_minutes(&mut kept, 65);
    assert_eq!(pass_minutes(&mut kept, 24 * 60), 0);
    // The first one's expire after a week.
    pass_minutes(&mut kept, 6 * 24 * 60 + 65);
    assert_eq!(records(&kept), u64::from(COUNT));
}
