use recordbatch::Compression;

use super::*;

impl World {
    /// Appends batches of two records each, over ten keys, up to that number.
    pub(super) fn write_keys(
        &mut self,
        topic: &Topic,
        rounds: std::ops::Range<u32>,
        compression: Compression,
    ) {
        for round in rounds {
            let mut builder = Builder::new();
            for of in [round, round + 1] {
                let key = format!("k{}", of % 10);
                let value = format!("{key}={round} {}", "x".repeat(500));
                let value = (round % 17 != 3).then_some(value);
                let time_ms = self.clock.unix_ms() as i64;
                builder.push(
                    time_ms,
                    Some(key.as_bytes()),
                    value.as_deref().map(str::as_bytes),
                    &[],
                );
            }
            let mut bytes = Vec::new();
            builder.finish_compressed(&Template::default(), compression, &mut bytes);
            self.append(topic, &bytes).unwrap();
            if round % 50 == 0 {
                self.sync();
            }
        }
        self.sync();
    }

    /// Returns the newest offset of each key and whether it has a value, and the number of records.
    pub(super) fn newest(
        &self,
        topic: &Arc<Topic>,
    ) -> (std::collections::BTreeMap<String, (i64, String)>, usize) {
        let mut newest = std::collections::BTreeMap::new();
        let (mut next, mut count, mut last) = (0, 0, -1);
        let view = self.topics.view(topic, 0).unwrap();
        while next < view.end {
            let fetched = self.fetch(topic, next).unwrap();
            assert!(!fetched.batches.is_empty(), "{next} of {view:?}");
            for bytes in batches(&fetched) {
                let (batch, _) = Batch::split(&bytes).unwrap();
                assert!(batch.is_intact());
                next = batch.header().last_offset() as u64 + 1;
                let payload = recordbatch::codecs::unpack(&batch, 1 << 20).unwrap();
                for record in recordbatch::Records::new(batch.header(), &payload) {
                    let record = record.unwrap();
                    assert!(record.offset > last, "{} behind {last}", record.offset);
                    last = record.offset;
                    count += 1;
                    let key = String::from_utf8_lossy(record.key.unwrap()).into_owned();
                    let value = String::from_utf8_lossy(record.value.unwrap_or_default());
                    newest.insert(key, (record.offset, value.into_owned()));
                }
            }
        }
        (newest, count)
    }
}

#[test]
fn compaction_keeps_the_newest_record_per_key_at_its_offset() {
    for compression in [Compression::None, Compression::Zstd] {
        let mut world = World::new();
        let topic = world.create("t", &[("cleanup.policy", "compact")]);
        world.write_keys(&topic, 0..3_000, compression);
        let (before, count) = world.newest(&topic);
        assert_eq!(count, 6_000);
        let size = world.topics.view(&topic, 0).unwrap().size;
        world.pass_ms(20_000);
        let view = world.topics.view(&topic, 0).unwrap();
        assert!(
            view.size * 2 < size || compression == Compression::Zstd,
            "{size} {view:?}"
        );
        let (after, count) = world.newest(&topic);
        assert_eq!(after, before);
        assert!(count < 3_000, "{count}");
        let mut world = world.crash();
        let topic = world.topic("t");
        assert_eq!(world.newest(&topic), (before, count));
        // A second compaction, after the compacted records.
        world.write_keys(&topic, 3_000..6_000, compression);
        let (before, _) = world.newest(&topic);
        world.pass_ms(20_000);
        let (after, count) = world.newest(&topic);
        assert_eq!(after, before);
        assert!(count < 4_000, "{count}");
        let world = world.crash();
        assert_eq!(world.newest(&world.topic("t")), (before, count));
    }
}

#[test]
fn compaction_frees_disk_and_still_serves_fetches_at_old_offsets() {
    let mut world = World::new();
    let topic = world.create("t", &[("cleanup.policy", "compact")]);
    let other = world.create("other", &[]);
    world.write_keys(&topic, 0..8_000, Compression::None);
    let (newest, _) = world.newest(&topic);
    let before = world.disk.used();
    for _ in 0..30 {
        world.produce(&other, &[&"v".repeat(100_000)]);
        world.pass_ms(20_000);
    }
    let after = world.disk.used();
    assert!(after < before, "{before} {after}");
    assert_eq!(world.newest(&topic).0, newest);
    let view = world.topics.view(&topic, 0).unwrap();
    assert_eq!((view.log_start, view.end), (0, 16_000));
    for offset in (0..view.end).step_by(371) {
        let fetched = batches(&world.fetch(&topic, offset).unwrap());
        let (batch, _) = Batch::split(&fetched[0]).unwrap();
        assert!(batch.header().last_offset() >= offset as i64, "{offset}");
    }
    assert_eq!(world.topics.view(&other, 0).unwrap().end, 30);
}

#[test]
fn power_failure_during_compaction_loses_no_newest_record() {
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut world = World::new();
        let topic = world.create("t", &[("cleanup.policy", "compact")]);
        world.write_keys(&topic, 0..1_500, Compression::None);
        let (before, _) = world.newest(&topic);
        // A crash leaves work in progress durable or not.
        world.clock.0.fetch_add(2_000, Ordering::Relaxed);
        world.topics.sweep();
        for _ in 0..rng.usize(0..4) {
            world.line.step();
        }
        let World {
            store,
            topics,
            line,
            background,
            disk,
            clock,
            options,
            ..
        } = world;
        drop((store, topics, line, background));
        disk.crash(&mut rng);
        let mut world = World::start(disk, clock, 2, options);
        assert_eq!(world.newest(&world.topic("t")).0, before, "{seed}");
        world.pass_ms(20_000);
        assert_eq!(world.newest(&world.topic("t")).0, before, "{seed}");
    }
}

#[test]
fn tombstones_are_removed_after_delete_retention_ms() {
    let mut world = World::new();
    let configs = [
        ("cleanup.policy", "compact"),
        ("delete.retention.ms", "60000"),
    ];
    let topic = world.create("t", &configs);
    let mut builder = Builder::new();
    builder.push(1, Some(b"gone"), None, &[]);
    let mut bytes = Vec::new();
    builder.finish(&Template::default(), &mut bytes);
    let placed = world.append(&topic, &bytes).unwrap();
    world.settle(placed);
    world.write_keys(&topic, 0..400, Compression::None);
    world.pass_ms(5_000);
    assert!(world.newest(&topic).0.contains_key("gone"));
    world.pass_ms(100_000);
    world.write_keys(&topic, 400..2_000, Compression::None);
    world.pass_ms(5_000);
    assert!(!world.newest(&topic).0.contains_key("gone"));
}
