//! Compaction of topics with batches that it cannot read, or that exceed its memory.

use recordbatch::Compression;

use super::*;

/// Encodes a batch with a correct checksum whose records contradict its header.
fn junk() -> Vec<u8> {
    let mut builder = Builder::new();
    builder.push(1, Some(b"key"), Some(b"value"), &[]);
    let mut bytes = Vec::new();
    builder.finish_compressed(&Template::default(), Compression::Gzip, &mut bytes);
    let header = *Batch::split(&bytes).unwrap().0.header();
    let mut bytes = Vec::new();
    recordbatch::seal(&header, b"this is not gzip", &mut bytes);
    bytes
}

impl World {
    /// Configures a topic to be compacted.
    fn compact_from_now_on(&mut self, name: &str) {
        let change = [("cleanup.policy", Alter::Set("compact"))];
        let altered = self.topics.alter(name, &change, Execution::Do);
        self.acknowledged(altered).unwrap();
    }

    fn record_count(&self, name: &str) -> usize {
        let topic = self.topic(name);
        let view = self.topics.view(&topic, 0).unwrap();
        let (mut next, mut count) = (view.log_start, 0);
        while next < view.end {
            for bytes in batches(&self.fetch(&topic, next).unwrap()) {
                let (batch, _) = Batch::split(&bytes).unwrap();
                count += batch.header().count as usize;
                next = batch.header().last_offset() as u64 + 1;
            }
        }
        count
    }
}

#[test]
fn an_unreadable_batch_stays_and_everything_else_is_compacted() {
    let mut world = World::new();
    let first = world.create("aaa", &[]);
    let second = world.create("bbb", &[("cleanup.policy", "compact")]);
    for topic in [&first, &second] {
        world.write_keys(topic, 0..1_000, Compression::None);
    }
    let placed = world.append(&first, &junk()).unwrap();
    let offset = world.settle(placed);
    world.write_keys(&first, 1_000..2_000, Compression::None);
    world.compact_from_now_on("aaa");
    world.pass_ms(20_000);
    for (name, before) in [("aaa", 4_001), ("bbb", 2_000)] {
        let after = world.record_count(name);
        assert!(after < before / 4, "{name}: {after}");
    }
    let kept = batches(&world.fetch(&first, offset).unwrap());
    let (batch, _) = Batch::split(&kept[0]).unwrap();
    assert!(batch.is_intact());
    assert_eq!(batch.header().base_offset as u64, offset);
    assert_eq!(batch.payload(), b"this is not gzip");
    assert!(world.topics.counts().get(Count::UnreadableBatches) >= 1);
    let warnings = world.topics.take_warnings();
    assert!(warnings[0].contains("topic aaa"), "{warnings:?}");
    assert!(world.topics.take_warnings().is_empty());
}

#[test]
fn batches_with_too_many_keys_are_compacted_one_by_one() {
    const BATCHES: usize = 20;
    const KEYS: usize = 1_000;
    let mut world = World::with(Options {
        compaction_size_max: 1_000,
        ..Options::default()
    });
    let configs = [
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0"),
    ];
    let topic = world.create("t", &configs);
    // No two batches of a round share a key, so each needs memory of its own.
    for number in (0..BATCHES).chain(0..BATCHES) {
        let keys = (0..KEYS).map(|key| format!("k{}={}", number * KEYS + key, "x".repeat(100)));
        let values: Vec<_> = keys.collect();
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        world.produce(&topic, &values);
    }
    // One check starts the compaction of a batch, and the next one ends it.
    for _ in 0..2 * 2 * BATCHES {
        world.clock.0.fetch_add(1_000, Ordering::Relaxed);
        world.topics.sweep();
        world.sync();
    }
    let (newest, count) = world.newest(&topic);
    assert_eq!(newest.len(), BATCHES * KEYS);
    assert!(count < BATCHES * KEYS * 3 / 2, "{count}");
    assert_eq!(world.topics.counts().get(Count::CompactionFailures), 0);
}

#[test]
fn the_dirtiest_partition_is_compacted_first() {
    let mut world = World::new();
    let topics = ["aaa", "bbb"].map(|name| world.create(name, &[("cleanup.policy", "compact")]));
    for topic in &topics {
        world.write_keys(topic, 0..600, Compression::None);
    }
    world.pass_ms(10_000);
    let settled = ["aaa", "bbb"].map(|name| world.record_count(name));
    for (topic, more) in topics.iter().zip([400, 4_000]) {
        world.write_keys(topic, 600..600 + more, Compression::None);
    }
    let written = ["aaa", "bbb"].map(|name| world.record_count(name));
    assert!(settled[0] < 600 && written[0] >= settled[0] + 800);
    // One check for the compaction, and another when its writes are durable.
    for _ in 0..2 {
        world.clock.0.fetch_add(1_000, Ordering::Relaxed);
        world.topics.sweep();
        world.sync();
    }
    let counts = ["aaa", "bbb"].map(|name| world.record_count(name));
    assert_eq!(counts[0], written[0], "aaa waits");
    assert!(counts[1] < written[1] / 2, "{counts:?} of {written:?}");
}
