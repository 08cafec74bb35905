use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::partition::{Batch, BatchPosition, Change, Decision, Limits, Marker, Sequenced};

const KEEP_MS: i64 = 10;

/// A stored record: its offset, its key and its value.
type Kept = (u64, Option<u8>, Option<u32>);

/// A stored batch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    last_offset: u64,
    transaction: Option<ProducerId>,
    marker: Option<Ending>,
    horizon_ms: Option<i64>,
    records: Vec<Kept>,
}

impl Stored {
    fn seen(&self) -> BatchFacts {
        BatchFacts {
            last_offset: self.last_offset,
            transaction: self.transaction,
            marker: self.marker,
            delete_horizon_ms: self.horizon_ms,
        }
    }
}

/// A partition with all its batches.
struct World {
    partition: Partition,
    stored: Vec<Stored>,
    sequences: HashMap<i64, i32>,
    value: u32,
    now_ms: i64,
}

impl World {
    fn new() -> Self {
        let limits = Limits {
            block_bytes: 1,
            ..Limits::default()
        };
        Self {
            partition: Partition::new(limits),
            stored: Vec::new(),
            sequences: HashMap::new(),
            value: 0,
            now_ms: 0,
        }
    }

    fn place(&self, offset: u64) -> BatchPosition {
        BatchPosition {
            offset,
            record: self.stored.len() as u64,
            now_ms: self.now_ms,
        }
    }

    /// Appends records of keys and values, possibly in a producer's transaction.
    fn write(&mut self, producer: Option<i64>, records: &[(Option<u8>, Option<u32>)]) {
        let offsets = records.len() as u32;
        let sequenced = producer.map(|id| {
            let sequence = self.sequences.entry(id).or_default();
            let producer = Sequenced {
                id: ProducerId(id),
                epoch: 0,
                sequence: *sequence,
            };
            *sequence += offsets as i32;
            producer
        });
        let batch = Batch {
            offsets,
            size: 1,
            timestamp_max: self.now_ms,
            timestamp_base: self.now_ms,
            producer: sequenced,
            is_transactional: producer.is_some(),
        };
        let Ok(Decision::Append { offset }) = self.partition.decide(&batch) else {
            panic!("{batch:?} is next");
        };
        self.partition.appended(self.place(offset), &batch);
        let records = (offset..).zip(records);
        self.stored.push(Stored {
            last_offset: self.partition.end() - 1,
            transaction: producer.map(ProducerId),
            marker: None,
            horizon_ms: None,
            records: records.map(|(offset, it)| (offset, it.0, it.1)).collect(),
        });
        self.partition.durable(self.partition.end());
    }

    fn end(&mut self, producer: i64, ending: Ending) {
        let marker = Marker {
            id: ProducerId(producer),
            epoch: 0,
            ending,
            coordinator_epoch: 0,
            size: 1,
            timestamp: self.now_ms,
        };
        let offset = self
            .partition
            .decide_marker(&marker)
            .expect("a marker is written");
        self.partition.marked(self.place(offset), &marker);
        self.stored.push(Stored {
            last_offset: offset,
            transaction: Some(marker.id),
            marker: Some(ending),
            horizon_ms: None,
            records: vec![(offset, None, None)],
        });
        self.partition.durable(self.partition.end());
    }

    fn compact(&mut self, bytes_max: usize) {
        let change = self.rewrite(bytes_max);
        self.partition.apply(change);
    }

    /// Compacts as a shell does: two passes over the stable batches.
    fn rewrite(&mut self, bytes_max: usize) -> Change {
        let until = self.partition.last_stable();
        let settled = self.stored.partition_point(|it| it.last_offset < until);
        let dirty = self.partition.cleaned();
        let mut gather = self.partition.gather(bytes_max);
        let mut cleaned = until;
        'all: for batch in &self.stored[..settled] {
            if !gather.wants(&batch.seen()) || batch.last_offset < dirty {
                continue;
            }
            for (offset, key, _) in &batch.records {
                if let Some(key) = key
                    && gather.key(&[*key], *offset).is_err()
                {
                    cleaned = batch.records[0].0;
                    break 'all;
                }
            }
        }
        let settled = self.stored.partition_point(|it| it.last_offset < cleaned);
        let mut sweep = gather.sweep(self.now_ms, KEEP_MS);
        let mut left = Vec::new();
        for batch in self.stored.drain(..settled) {
            left.extend(compacted_batch(&mut sweep, batch));
        }
        left.append(&mut self.stored);
        self.stored = left;
        Change::Cleaned(cleaned)
    }

    /// Returns the newest value of each key that a `read_committed` reader finds, and all deletions
    /// that it sees.
    fn table(&self) -> (HashMap<u8, u32>, usize) {
        let end = self.partition.last_stable();
        let told: Vec<_> = self.partition.aborted(0, end).collect();
        let mut table = HashMap::new();
        let mut deletions = 0;
        let mut skipped: Vec<ProducerId> = Vec::new();
        let mut told = told.into_iter().collect::<Vec<_>>();
        told.sort_unstable_by_key(|it| it.1);
        let mut told = told.into_iter().peekable();
        for batch in self.stored.iter().filter(|it| it.last_offset < end) {
            while let Some((id, _)) = told.next_if(|it| it.1 <= batch.last_offset) {
                skipped.push(id);
            }
            if batch.marker.is_some() {
                skipped.retain(|it| Some(*it) != batch.transaction);
                continue;
            }
            if batch.transaction.is_some_and(|it| skipped.contains(&it)) {
                continue;
            }
            for (_, key, value) in &batch.records {
                match (key, value) {
                    (Some(key), Some(value)) => _ = table.insert(*key, *value),
                    (Some(key), None) => {
                        table.remove(key);
                        deletions += 1;
                    }
                    (None, _) => {}
                }
            }
        }
        (table, deletions)
    }

    fn offsets(&self) -> Vec<u64> {
        let records = self.stored.iter().flat_map(|it| &it.records);
        records.map(|it| it.0).collect()
    }
}

/// A batch after the compaction.
fn compacted_batch(sweep: &mut Sweep, mut batch: Stored) -> Option<Stored> {
    let seen = batch.seen();
    match sweep.judge(&seen) {
        Verdict::Drop => return None,
        Verdict::Keep => return Some(batch),
        Verdict::Stamp { delete_horizon_ms } => {
            batch.horizon_ms = Some(delete_horizon_ms);
            return Some(batch);
        }
        Verdict::Look { delete_horizon_ms } => {
            batch.records.retain(|(offset, key, value)| {
                let key = key.map(|it| [it]);
                let facts = Facts {
                    offset: *offset,
                    key: key.as_ref().map(|it| &it[..]),
                    is_deletion: value.is_none(),
                };
                sweep.keeps(&seen, &facts)
            });
            if batch.records.iter().any(|it| it.2.is_none()) {
                batch.horizon_ms.get_or_insert(delete_horizon_ms);
            }
        }
    }
    (!batch.records.is_empty()).then_some(batch)
}

#[test]
fn compaction_retains_the_newest_record_of_each_key_at_its_offset() {
    let mut world = World::new();
    world.write(None, &[(Some(1), Some(10)), (Some(2), Some(20))]);
    world.write(None, &[(Some(1), Some(11)), (None, Some(9))]);
    world.write(None, &[(Some(3), Some(30)), (Some(1), Some(12))]);
    world.compact(usize::MAX);
    assert_eq!(world.offsets(), [1, 4, 5]);
    assert_eq!(world.partition.cleaned(), 6);
    // Nothing is new, so nothing changes.
    let before = world.stored.clone();
    world.compact(usize::MAX);
    assert_eq!(world.stored, before);
}

#[test]
fn a_tombstone_survives_compaction_until_its_delete_horizon() {
    let mut world = World::new();
    world.write(None, &[(Some(1), Some(10))]);
    world.write(None, &[(Some(1), None)]);
    world.now_ms = 100;
    world.compact(usize::MAX);
    assert_eq!(world.offsets(), [1]);
    assert_eq!(world.stored[0].horizon_ms, Some(110));
    world.now_ms = 109;
    world.compact(usize::MAX);
    assert_eq!(world.offsets(), [1]);
    assert_eq!(world.stored[0].horizon_ms, Some(110));
    world.now_ms = 110;
    world.compact(usize::MAX);
    assert!(world.stored.is_empty());
}

#[test]
fn compaction_removes_aborted_records_and_ignores_their_keys() {
    let mut world = World::new();
    world.write(None, &[(Some(1), Some(10))]);
    world.write(Some(7), &[(Some(1), Some(11))]);
    world.end(7, Ending::Abort);
    world.write(Some(7), &[(Some(2), Some(20))]);
    world.end(7, Ending::Commit);
    world.compact(usize::MAX);
    // The markers: of the abort, whose records existed at the first pass, and of the commit.
    assert_eq!(world.offsets(), [0, 2, 3, 4]);
    world.compact(usize::MAX);
    assert_eq!(world.stored[1].horizon_ms, Some(KEEP_MS));
    assert_eq!(world.stored[3].horizon_ms, None);
    world.now_ms = KEEP_MS;
    world.compact(usize::MAX);
    assert_eq!(world.offsets(), [0, 3, 4]);
    // A marker stays as long as records that it ends.
    world.write(None, &[(Some(2), Some(21))]);
    world.compact(usize::MAX);
    assert_eq!(world.offsets(), [0, 4, 5]);
    assert_eq!(world.stored[1].horizon_ms, None);
    world.compact(usize::MAX);
    assert_eq!(world.stored[1].horizon_ms, Some(2 * KEEP_MS));
}

#[test]
fn compaction_stops_at_an_open_transaction() {
    let mut world = World::new();
    world.write(None, &[(Some(1), Some(10))]);
    world.write(Some(7), &[(Some(1), Some(11))]);
    world.write(None, &[(Some(1), Some(12))]);
    world.compact(usize::MAX);
    assert_eq!(world.offsets(), [0, 1, 2]);
    assert_eq!(world.partition.cleaned(), 1);
    world.end(7, Ending::Commit);
    world.compact(usize::MAX);
    assert_eq!(world.offsets(), [2, 3]);
}

/// As after a crash between the new batches and the record of the change.
#[test]
fn compaction_keeps_committed_records_after_an_abort_marker_is_removed() {
    let mut world = World::new();
    world.write(Some(7), &[(Some(1), Some(10))]);
    world.end(7, Ending::Abort);
    world.write(Some(7), &[(Some(2), Some(20))]);
    world.end(7, Ending::Commit);
    for _ in 0..4 {
        world.rewrite(usize::MAX);
        world.now_ms += KEEP_MS;
    }
    assert_eq!(world.offsets(), [2, 3]);
}

#[test]
fn compaction_continues_in_the_next_pass_when_the_key_map_is_full() {
    let mut world = World::new();
    for key in 0..4 {
        world.write(None, &[(Some(key), Some(1)), (Some(key), Some(2))]);
    }
    let two_keys = 2 * (KEY_OVERHEAD + 1);
    world.compact(two_keys);
    assert_eq!(world.offsets(), [1, 3, 4, 5, 6, 7]);
    assert_eq!(world.partition.cleaned(), 4);
    world.compact(two_keys);
    assert_eq!(world.offsets(), [1, 3, 5, 7]);
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        producer: Option<i64>,
        records: Vec<(Option<u8>, bool)>,
    },
    End {
        producer: i64,
        commits: bool,
    },
    Compact {
        keys: usize,
    },
    Pass {
        ms: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let records =
        prop::collection::vec((prop::option::weighted(0.9, 0..5_u8), any::<bool>()), 1..4);
    prop_oneof![
        5 => (prop::option::of(0..3_i64), records)
            .prop_map(|(producer, records)| Step::Write { producer, records }),
        3 => (0..3_i64, any::<bool>()).prop_map(|(producer, commits)| Step::End { producer, commits }),
        2 => (1..8_usize).prop_map(|keys| Step::Compact { keys }),
        1 => (0..2 * KEEP_MS).prop_map(|ms| Step::Pass { ms }),
    ]
}

proptest! {
    #[test]
    fn compaction_preserves_the_latest_value_of_every_key(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Write { producer, records } => {
                    let records: Vec<_> = records.into_iter().map(|(key, says)| {
                        world.value += 1;
                        (key, says.then_some(world.value))
                    }).collect();
                    world.write(producer, &records);
                }
                Step::End { producer, commits } => {
                    let ending = if commits { Ending::Commit } else { Ending::Abort };
                    world.end(producer, ending);
                }
                Step::Pass { ms } => world.now_ms += ms,
                Step::Compact { keys } => {
                    let (before, cleaned) = (world.table(), world.partition.cleaned());
                    let offsets = world.offsets();
                    world.compact(keys * (KEY_OVERHEAD + 1));
                    let after = world.table();
                    prop_assert_eq!(&after.0, &before.0);
                    prop_assert!(after.1 <= before.1);
                    prop_assert!(world.partition.cleaned() >= cleaned);
                    let left = world.offsets();
                    prop_assert!(left.is_sorted() && left.iter().all(|it| offsets.contains(it)));
                }
            }
        }
        // In the end there is one record for each key, and no marker.
        for producer in 0..3 {
            world.end(producer, Ending::Abort);
        }
        let (table, _) = world.table();
        for _ in 0..4 {
            world.compact(usize::MAX);
            world.now_ms += KEEP_MS;
        }
        prop_assert_eq!(&world.table().0, &table);
        let data = world.stored.iter().filter(|it| it.marker.is_none());
        let count: usize = data.map(|it| it.records.len()).sum();
        prop_assert_eq!(count, table.len());
        let needless = world.stored.iter().filter(|it| it.marker == Some(Ending::Abort));
        prop_assert_eq!(needless.count(), 0);
    }
}
