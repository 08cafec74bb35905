//! Limits on blocks that are not committed, and shards that stand still.

use super::log::open_replica;
use super::*;
use crate::filing::Step;

const OTHER: ShardId = ShardId(0);

/// Opens a journal whose shards may have 4,000 uncommitted bytes each.
fn open_limited() -> SteppedJournal {
    let options = Options {
        commit: Commit::ByCaller,
        uncommitted_bytes_max: 4000,
        ..options(1)
    };
    Journal::open_stepped(disk(), &options).unwrap()
}

impl SteppedJournal {
    fn try_append(&self, shard: ShardId) -> Result<Appended, AppendError> {
        let mut guard = self.journal.lock(shard, 1000);
        guard.append(STREAM, None, 3, &[7; 1000])
    }

    fn append_until_full(&self, shard: ShardId) {
        while self.try_append(shard).is_ok() {}
        assert_eq!(self.try_append(shard), Err(AppendError::Full));
    }
}

#[test]
fn appends_above_the_uncommitted_limit_wait_for_a_commit() {
    let mut stepped = open_limited();
    stepped.journal.begin_reign(SHARD, 1);
    stepped.journal.begin_reign(OTHER, 1);
    assert_eq!(stepped.try_append(SHARD).map(|it| it.offset), Ok(0));
    stepped.settle();
    stepped.append_until_full(SHARD);
    stepped.settle();
    assert_eq!(stepped.try_append(SHARD), Err(AppendError::Full), "written");
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
    assert_eq!(stepped.journal.uncommitted_bytes(SHARD), 3 * 1024);
    assert!(stepped.try_append(OTHER).is_ok());
    let (bell, waker) = Bell::new();
    assert!(stepped.journal.notify_room(SHARD, &waker));
    stepped.journal.commit(SHARD, Index(1));
    assert_eq!(bell.rings(), 1);
    assert!(stepped.try_append(SHARD).is_ok());
    stepped.settle();
    stepped.journal.commit(SHARD, Index(3));
    assert_eq!(stepped.journal.uncommitted_bytes(SHARD), 0);
    assert!(!stepped.journal.notify_room(SHARD, &waker));
}

#[test]
fn cut_and_dropped_blocks_free_uncommitted_bytes() {
    let mut stepped = open_limited();
    stepped.journal.begin_proposed_reign(SHARD, 1);
    for _ in 0..2 {
        stepped.try_append(SHARD).unwrap();
        let proposed = stepped.journal.take_closed(SHARD).unwrap();
        stepped.journal.append_decided(SHARD, &proposed).unwrap();
    }
    stepped.settle();
    stepped.append_until_full(SHARD);
    stepped.journal.end_reign(SHARD);
    assert_eq!(stepped.journal.uncommitted_bytes(SHARD), 2 * 1024);
    stepped.journal.cut(SHARD, Index(2)).unwrap();
    assert_eq!(stepped.journal.uncommitted_bytes(SHARD), 1024);
    stepped.settle();
    stepped.journal.commit(SHARD, Index(1));
    assert_eq!(stepped.journal.uncommitted_bytes(SHARD), 0);
}

#[test]
fn uncommitted_bytes_are_counted_again_after_a_start() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    stepped.journal.begin_reign(SHARD, 1);
    stepped.try_append(SHARD).unwrap();
    stepped.settle();
    drop(stepped);
    let stepped = open_replica(&disk, 2);
    assert_eq!(stepped.journal.uncommitted_bytes(SHARD), 1024);
    stepped.journal.commit(SHARD, Index(1));
    assert_eq!(stepped.journal.uncommitted_bytes(SHARD), 0);
}

impl SteppedJournal {
    /// Steps the line and the filing until neither makes progress. Returns the line's last step.
    fn step_all(&mut self) -> LineStep {
        loop {
            let line = self.line.step();
            if line != LineStep::Worked && self.background.step(1000) != Step::Worked {
                return line;
            }
        }
    }
}

#[test]
fn one_shard_without_commits_stops_all_shards_and_is_named() {
    let mut stepped = open_replica(&disk(), 1);
    stepped.journal.begin_reign(SHARD, 1);
    stepped.journal.begin_reign(OTHER, 1);
    stepped.try_append(SHARD).unwrap();
    assert_eq!(stepped.step_all(), LineStep::Idle);
    assert_eq!(stepped.journal.stalled_shards(), []);
    let mut step = LineStep::Idle;
    for _ in 0..1000 {
        if step == LineStep::Starved {
            break;
        }
        stepped.try_append(OTHER).unwrap();
        step = stepped.step_all();
        let end = stepped.journal.shard_end(OTHER).index;
        stepped.journal.commit(OTHER, end);
    }
    assert_eq!(step, LineStep::Starved);
    let segment_size = options(1).segment_size;
    let [stalled] = stepped.journal.stalled_shards()[..] else {
        panic!("{:?}", stepped.journal.stalled_shards());
    };
    assert_eq!(stalled.shard, SHARD);
    assert!(stalled.held_bytes > 4 * segment_size, "{stalled:?}");
    // Not even a vote is written.
    let vote = Vote::new(2, b"x").unwrap();
    let vote = stepped.journal.save_vote(OTHER, vote).unwrap();
    assert_eq!(stepped.step_all(), LineStep::Starved);
    assert_eq!(stepped.journal.vote_status(vote), Status::Pending);
    let end = stepped.journal.shard_end(OTHER).index;
    assert!(stepped.journal.last(OTHER, Stage::Written) < end);

    stepped.journal.commit(SHARD, Index(1));
    assert_eq!(stepped.step_all(), LineStep::Idle);
    assert_eq!(stepped.journal.stalled_shards(), []);
    assert_eq!(stepped.journal.vote_status(vote), Status::Durable);
    assert_eq!(stepped.journal.last(OTHER, Stage::Written), end);
}
