//! Retention by time: what counts as the age of a record.

use recordbatch::{Compression, NO_TIMESTAMP, PatchedBatch};

use super::*;

const MINUTE_MS: u64 = 60_000;
const WEEK_MS: u64 = 7 * 24 * 60 * MINUTE_MS;

/// Encodes two records with these timestamps; the header's maximum timestamp can be overridden.
fn dated(timestamps: [i64; 2], claimed_max: Option<i64>, compression: Compression) -> Vec<u8> {
    let mut builder = Builder::new();
    for timestamp in timestamps {
        builder.push(timestamp, Some(b"key"), Some(b"value"), &[]);
    }
    let mut bytes = Vec::new();
    builder.finish_compressed(&Template::default(), compression, &mut bytes);
    if let Some(claimed_max) = claimed_max {
        let mut batch = PatchedBatch::new(&Batch::split(&bytes).unwrap().0);
        batch.set_max_timestamp(claimed_max);
        bytes = batch.to_vec();
    }
    bytes
}

impl World {
    fn unix_ms(&self) -> i64 {
        self.clock.unix_ms() as i64
    }

    fn log_start(&self, name: &str) -> u64 {
        self.topics.view(&self.topic(name), 0).unwrap().log_start
    }

    fn append_settled(&mut self, name: &str, bytes: &[u8]) {
        let placed = self.append(&self.topic(name), bytes).unwrap();
        self.settle(placed);
    }
}

#[test]
fn records_without_timestamps_age_from_their_append() {
    for compression in [Compression::None, Compression::Gzip] {
        let mut world = World::new();
        world.create("t", &[]);
        let bytes = dated([NO_TIMESTAMP; 2], None, compression);
        world.append_settled("t", &bytes);
        world.pass_ms(WEEK_MS - MINUTE_MS);
        assert_eq!(world.log_start("t"), 0);
        let mut world = world.crash();
        world.pass_ms(MINUTE_MS / 2);
        assert_eq!(world.log_start("t"), 0);
        world.pass_ms(MINUTE_MS);
        assert_eq!(world.log_start("t"), 2);
    }
}

#[test]
fn wrong_claimed_maximum_timestamp_does_not_expire_new_records() {
    for compression in [Compression::None, Compression::Zstd] {
        let mut world = World::new();
        world.create("t", &[]);
        let now = world.unix_ms();
        let bytes = dated([now, now + 1], Some(NO_TIMESTAMP), compression);
        world.append_settled("t", &bytes);
        world.pass_ms(WEEK_MS - MINUTE_MS);
        assert_eq!(world.log_start("t"), 0);
        world.pass_ms(2 * MINUTE_MS);
        assert_eq!(world.log_start("t"), 2);
    }
}

#[test]
fn old_records_stay_until_the_retention_check_interval_has_passed() {
    let mut world = World::new();
    world.create("t", &[]);
    let old = world.unix_ms() - 2 * WEEK_MS as i64;
    let bytes = dated([old, old], None, Compression::None);
    world.append_settled("t", &bytes);
    world.pass_ms(4 * MINUTE_MS);
    let mut world = world.crash();
    world.pass_ms(MINUTE_MS / 2);
    assert_eq!(world.log_start("t"), 0);
    world.pass_ms(MINUTE_MS);
    assert_eq!(world.log_start("t"), 2);
}

#[test]
fn claimed_maximum_timestamp_is_corrected_to_that_of_the_records() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let now = world.unix_ms();
    for claimed in [NO_TIMESTAMP, now - 5, now + 99] {
        let bytes = dated([now + 2, now], Some(claimed), Compression::None);
        world.append_settled("t", &bytes);
    }
    let fetched = world.fetch(&topic, 0).unwrap();
    assert_eq!(fetched.batches.len(), 3);
    for bytes in batches(&fetched) {
        let (batch, _) = Batch::split(&bytes).unwrap();
        assert!(batch.is_intact());
        assert_eq!(batch.header().max_timestamp, now + 2);
    }
    let mut find = |what| {
        let located = world.topics.locate(&topic, 0, what, Isolation::Uncommitted);
        let located = world.acknowledged(located).unwrap();
        located.map(|it| (it.offset, it.timestamp))
    };
    assert_eq!(find(Find::Time(now + 1)), Some((0, now + 2)));
    assert_eq!(find(Find::Time(now + 3)), None);
    assert_eq!(find(Find::MaxTimestamp), Some((0, now + 2)));
}

#[test]
fn retried_batch_with_a_corrected_maximum_timestamp_is_a_duplicate() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let producer = Some(BatchProducer {
        id: 1,
        epoch: 0,
        sequence: 0,
    });
    let produced = batch_of(&["a"], world.unix_ms(), producer, &Template::default());
    let mut batch = PatchedBatch::new(&Batch::split(&produced).unwrap().0);
    batch.set_max_timestamp(NO_TIMESTAMP);
    let bytes = batch.to_vec();
    let first = world.append(&topic, &bytes).unwrap();
    world.settle(first);
    let again = world.append(&topic, &bytes).unwrap();
    assert!(again.is_duplicate);
    assert_eq!(again.offset, 0);
}

#[test]
fn batch_with_an_invalid_record_payload_is_refused() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let good = dated([1, 2], None, Compression::None);
    let (batch, _) = Batch::split(&good).unwrap();
    let (header, payload) = (*batch.header(), batch.payload());
    let cut_off = &payload[..payload.len() - 1];
    for junk in [&[0xff; 40][..], cut_off, &[payload, b"x"].concat()] {
        let mut bytes = Vec::new();
        recordbatch::seal(&header, junk, &mut bytes);
        let refused = world.append(&topic, &bytes).unwrap_err();
        assert!(matches!(refused, ProduceError::Record(_)), "{refused:?}");
    }
    assert_eq!(world.topics.view(&topic, 0).unwrap().end, 0);
}

#[test]
fn timestamps_too_far_from_the_clock_are_refused() {
    const HOUR_MS: i64 = 3_600_000;
    for compression in [Compression::None, Compression::Lz4] {
        let mut world = World::new();
        let topic = world.create("t", &[("message.timestamp.before.max.ms", "5000")]);
        let any = world.create(
            "any",
            &[("message.timestamp.after.max.ms", "9223372036854775807")],
        );
        let stamped = world.create("stamped", &[("message.timestamp.type", "LogAppendTime")]);
        let now = world.unix_ms();
        let batch = |timestamp| dated([timestamp, now], None, compression);
        for (timestamp, is_taken) in [
            (now + HOUR_MS, true),
            (now + HOUR_MS + 1, false),
            (now - 5_000, true),
            (now - 5_001, false),
            (NO_TIMESTAMP, true),
        ] {
            let appended = world.append(&topic, &batch(timestamp));
            assert_eq!(appended.is_ok(), is_taken, "{timestamp}: {appended:?}");
        }
        let ahead = world.append(&topic, &batch(now + HOUR_MS + 7)).unwrap_err();
        assert_eq!(
            ahead.to_string(),
            format!(
                "a record is dated {}, 3600007 ms ahead of the node's clock (limit 3600000 ms, \
                 message.timestamp.after.max.ms)",
                now + HOUR_MS + 7
            )
        );
        for topic in [&any, &stamped] {
            world
                .append(topic, &batch(now + 80 * 365 * 24 * HOUR_MS))
                .unwrap();
            world.append(topic, &batch(1)).unwrap();
        }
        world.sync();
    }
}
