//! A follower that is fed by a leader: two journals on two disks, with crashes at any call to either.
//!
//! The world plays the consensus of two nodes: a block is committed when it is on both disks, and
//! the node with the newer log leads a shard. It copies blocks by index, cuts the follower where the
//! logs differ, and saves votes. No committed block may change or vanish, and at the end both nodes
//! must have the same streams.

mod checks;
mod election;
mod leader;
mod pair;

use std::panic::{AssertUnwindSafe, catch_unwind};

use journal::record::{self, RecordKind};
use journal::{DecidedBlock, DecidedError, Index, ShardId, StreamId};

use self::pair::Pair;

const SEEDS: u64 = 300;

fn run(seed: u64) {
    let mut pair = Pair::new(seed);
    for round in 0..pair.rng.usize(1..6) {
        for _ in 0..pair.rng.usize(..100) {
            pair.act();
        }
        pair.crash();
        if round % 2 == 1 {
            pair.settle();
        }
    }
    pair.finish();
}

#[test]
fn a_follower_has_the_streams_of_its_leader_after_crashes() {
    for seed in 0..SEEDS {
        if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
            panic!("seed {seed} failed");
        }
    }
}

#[test]
fn decided_block_with_a_gap_in_offsets_is_refused() {
    let mut pair = Pair::new(1);
    let shard = ShardId(0);
    let journal = pair.replicas[0].journal();
    let mut body = Vec::new();
    let record = record::RecordView {
        stream: StreamId(9),
        offset: 1,
        kind: RecordKind::Data,
        tag: 0,
        bytes: b"the record before is missing",
    };
    record::encode(&record, &mut body);
    let last = journal.last_taken(shard);
    let block = DecidedBlock {
        kind: journal::block::BlockKind::Records,
        term: last.term + 1,
        index: Index(last.index.0 + 1),
        time_ms: pair.now_ms,
        body: body.into(),
    };
    let refused = journal.append_decided(shard, &block);
    assert!(matches!(
        refused,
        Err(DecidedError::Offset {
            offset: 1,
            next: 0,
            ..
        })
    ));
    assert_eq!(journal.last_taken(shard), last);
    pair.finish();
}
