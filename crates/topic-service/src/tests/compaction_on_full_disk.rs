//! Compactions on a disk that fills up: they wait, continue when there is space, and leave nothing
//! behind.

use std::collections::BTreeMap;

use store::StorageState;

use super::*;
use crate::places::compacted_of;

const KEYS: usize = 1_000;
const REWRITTEN: usize = 200;

impl World {
    /// Creates a compacted topic larger than one turn of a compaction; 200 of its keys are written
    /// twice.
    fn with_much_to_compact() -> (Self, Arc<Topic>) {
        let mut world = Self::new();
        let topic = world.create("t", &[("cleanup.policy", "compact")]);
        let filler = "x".repeat(10_000);
        for key in (0..KEYS).chain(0..REWRITTEN) {
            let value = format!("k{key}={filler}");
            world.append(&topic, &world.batch(&[&value])).unwrap();
            world.sync();
        }
        (world, topic)
    }

    /// Fills the disk with another topic, for as long as its capacity stays the same.
    fn fill_disk(&mut self, other: &Topic) {
        self.disk.set_capacity(0);
        let value = "v".repeat(10_000);
        let mut refused = 0;
        for _ in 0..20_000 {
            match self.append(other, &self.batch(&[&value])) {
                Ok(placed) => {
                    self.settle(placed);
                    refused = 0;
                }
                Err(error) => {
                    assert_eq!(error, Storage::DiskFull.into());
                    refused += 1;
                }
            }
            if refused == 10 {
                return;
            }
            // The journal checks for space now and then; no sweep checks the partitions.
            self.clock.0.fetch_add(1_000, Ordering::Relaxed);
            self.sync();
        }
        panic!("the disk is never full");
    }

    fn is_compacting(&self) -> bool {
        self.topics.state.compaction.lock().is_some()
    }

    /// Runs one check of the partitions.
    fn sweep_once(&mut self) {
        self.clock.0.fetch_add(1_000, Ordering::Relaxed);
        self.topics.sweep();
        self.sync();
    }

    /// Returns the number of records in the compacted stream, and of those that count.
    fn compacted_records(&self, topic: &Topic) -> (std::ops::Range<u64>, std::ops::Range<u64>) {
        let journal = &self.topics.state.journal;
        let slot = &topic.slots[0];
        let counted = slot.lock(journal).unwrap().compacted;
        let stored = journal.stream(slot.at.shard, compacted_of(slot.at.stream));
        let stored = stored.map_or(0..0, |it| it.start..it.next);
        (stored, counted.first..counted.end)
    }

    /// Advances the clock until no compaction is in progress.
    fn finish_compacting(&mut self) {
        for _ in 0..100 {
            self.sweep_once();
            if self.health.view().state == StorageState::Serving && !self.is_compacting() {
                return;
            }
        }
        panic!("the compaction does not end");
    }

    /// Returns the newest offset of each key, and the number of records.
    fn offsets(&self, topic: &Arc<Topic>) -> (BTreeMap<String, i64>, usize) {
        let (newest, count) = self.newest(topic);
        let offsets = newest.into_iter().map(|(key, (offset, _))| (key, offset));
        (offsets.collect(), count)
    }

    fn check_compacted(&mut self, before: &BTreeMap<String, i64>) {
        let topic = self.topic("t");
        let (after, count) = self.offsets(&topic);
        assert_eq!(&after, before);
        assert!(count < KEYS + REWRITTEN / 2, "{count}");
        assert_eq!(self.topics.counts().get(Count::CompactionFailures), 0);
        let (stored, counted) = self.compacted_records(&topic);
        assert!(!counted.is_empty());
        assert_eq!(stored, counted, "nothing else is in the stream");
    }
}

#[test]
fn compaction_pauses_on_a_full_disk_and_resumes_where_it_stopped() {
    let (mut world, topic) = World::with_much_to_compact();
    let (before, count) = world.offsets(&topic);
    assert_eq!(count, KEYS + REWRITTEN);
    let other = world.create("other", &[]);
    world.sweep_once();
    assert!(world.is_compacting(), "a part is judged at a time");
    let (written, counted) = world.compacted_records(&topic);
    assert!(!written.is_empty() && counted.is_empty());
    world.fill_disk(&other);
    for _ in 0..20 {
        world.sweep_once();
        assert_eq!(world.offsets(&topic), (before.clone(), count));
    }
    assert!(world.is_compacting(), "it waits");
    assert_eq!(world.compacted_records(&topic), (written.clone(), counted));
    world.disk.set_capacity(u64::MAX);
    world.finish_compacting();
    world.check_compacted(&before);
    let (stored, _) = world.compacted_records(&topic);
    assert_eq!(stored.start, written.start, "nothing was written twice");
    let mut world = world.crash();
    world.check_compacted(&before);
}

#[test]
fn compaction_interrupted_by_a_crash_on_a_full_disk_leaves_no_garbage() {
    let (mut world, topic) = World::with_much_to_compact();
    let (before, _) = world.offsets(&topic);
    let other = world.create("other", &[]);
    world.sweep_once();
    world.fill_disk(&other);
    world.sweep_once();
    let (written, _) = world.compacted_records(&topic);
    assert!(world.is_compacting() && !written.is_empty());
    world.disk.set_capacity(u64::MAX);
    let mut world = world.crash();
    assert_eq!(world.offsets(&world.topic("t")).0, before);
    world.pass_ms(20_000);
    world.finish_compacting();
    world.check_compacted(&before);
}

#[test]
fn compaction_writes_nothing_on_a_full_disk() {
    let (mut world, topic) = World::with_much_to_compact();
    let (before, _) = world.offsets(&topic);
    let other = world.create("other", &[]);
    // Creating a topic does not check the partitions again within a second.
    assert!(!world.is_compacting());
    world.fill_disk(&other);
    for _ in 0..20 {
        world.sweep_once();
    }
    assert!(world.is_compacting());
    assert!(world.compacted_records(&topic).0.is_empty());
    world.disk.set_capacity(u64::MAX);
    world.finish_compacting();
    world.check_compacted(&before);
}

#[test]
fn fetches_find_every_record_while_a_compaction_becomes_durable() {
    let (mut world, topic) = World::with_much_to_compact();
    let (before, _) = world.offsets(&topic);
    for _ in 0..20 {
        world.clock.0.fetch_add(1_000, Ordering::Relaxed);
        world.topics.sweep();
        // The disk is slow: one step per second.
        assert_eq!(world.offsets(&topic).0, before);
        world.line.step();
        world.background.step(world.clock.unix_ms());
    }
    world.finish_compacting();
    world.check_compacted(&before);
}
