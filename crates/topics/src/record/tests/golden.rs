//! The layouts on disk: never regenerated.

use super::*;
use crate::index::Block;
use crate::{Credential, Hash, User};

#[track_caller]
fn assert_golden(bytes: &[u8], expected: &[&[u8]]) {
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_topic() {
    let bytes = encoded(|out| topic().encode(out));
    let expected: &[&[u8]] = &[
        b"0123456789abcdef\x06\0orders\x03\0\0\0\x02\x01\0\0\0\0\0\0",
        b"\x02\0\0\0",
        b"\x01\x07\0compact",
        b"\x07\x02\0-1",
    ];
    assert_golden(&bytes, expected);
    assert_eq!(Topic::decode(&bytes), Ok(topic()));
}

#[test]
fn a_user() {
    let user = User::new("ann").with(
        Hash::Sha256,
        Credential {
            salt: b"salt".to_vec(),
            iterations: 4_096,
            stored_key: vec![1; 32],
            server_key: vec![2; 32],
        },
    );
    let bytes = encoded(|out| user.encode(out));
    let expected: &[&[u8]] = &[
        b"\x03\0ann\x01\0\0\0",
        b"\x01\0\x10\0\0\x04\0\0\0salt",
        b"\x20\0\0\0",
        &[1; 32],
        b"\x20\0\0\0",
        &[2; 32],
    ];
    assert_golden(&bytes, expected);
    assert_eq!(User::decode(&bytes), Ok(user));
}

#[test]
fn a_transaction() {
    let bytes = encoded(|out| transaction().encode(out));
    let expected: &[&[u8]] = &[
        b"\x06\0copy-1\x07\0\0\0\0\0\0\0\x02\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x60\xea\0\0\x01",
        b"\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0",
        b"\x02\0\0\0",
        b"\x010123456789abcdef\x05\0\0\0",
        b"\x02\x07\0readers",
    ];
    assert_golden(&bytes, expected);
    assert_eq!(Transaction::decode(&bytes), Ok(transaction()));
}

#[test]
fn a_partition() {
    let bytes = encoded(|out| partition().encode(3, out));
    let expected = [
        UNDATED.concat(),
        b"\x09\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0".to_vec(),
    ];
    assert_eq!(bytes, expected.concat());
    let read = Partition::decode(&bytes, Limits::default()).unwrap();
    assert_eq!((read.records, read.partition), (3, partition()));
}

#[test]
fn an_undated_partition_record_takes_the_time_it_was_written() {
    let bytes = UNDATED.concat();
    Partition::decode(&bytes, Limits::default()).unwrap_err();
    let read = Partition::decode_undated(&bytes, Limits::default(), 9).unwrap();
    // The record does not contain the marker's time.
    let mut expected = partition();
    let date = |block: &mut Block| {
        block.dated_ms = 8;
        Ok::<_, Malformed>(())
    };
    expected.index.date(date).unwrap();
    assert_eq!((read.records, read.partition), (3, expected));
}

/// The layout before append times were stored.
const UNDATED: &[&[u8]] = &[
    b"\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x01\0\0\0\x04\0\0\0\x01\0\0\0\0\0\0\0",
    b"\0\0\x01\0\0\0\0\0",
    b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x16\x01\0\0\0\0\0\0",
    b"\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x02\0\0\0",
    b"\x06\0\0\0\0\0\0\0\x01\0\xff\xff\xff\xff\x09\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0",
    b"\x01\x06\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0",
    b"\x07\0\0\0\0\0\0\0\x01\0\x03\0\0\0\x09\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x01\x06\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0",
    b"\x01\0\0\0",
    b"\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0",
];

#[test]
fn golden_bytes_of_changes_and_record_tags() {
    let change = |change: Change| encoded(|out| change.encode(out));
    assert_eq!(change(Change::LogStart(7)), b"\x01\x07\0\0\0\0\0\0\0");
    let leader = Change::Leader { epoch: 2, start: 9 };
    assert_eq!(change(leader), b"\x02\x02\0\0\0\x09\0\0\0\0\0\0\0");
    assert_eq!(change(Change::Cleaned(3)), b"\x03\x03\0\0\0\0\0\0\0");
    assert_eq!(Reserved(1000).encode(), *b"\xe8\x03\0\0\0\0\0\0");
    assert_eq!((BATCH, CHANGE, PARTITION_UNDATED), (1, 2, 3));
    assert_eq!((COMPACTED, PARTITION), (4, 5));
    assert_eq!((TOPIC, TOPIC_GONE), (1, 2));
    assert_eq!((TRANSACTION, TRANSACTION_GONE, PRODUCER_IDS), (1, 2, 3));
}

#[test]
fn the_numbers_of_stored_enums_are_stable() {
    let states = [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
    ];
    for (number, name) in (0..).zip(states) {
        let state = State::from_u8(number).unwrap();
        assert_eq!((state as u8, state.as_str()), (number, name));
    }
    assert_eq!(State::from_u8(6), None);
    let keys = [
        "cleanup.policy",
        "compression.type",
        "delete.retention.ms",
        "max.message.bytes",
        "message.timestamp.type",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "telpher.durability",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "message.downconversion.enable",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    ];
    for (number, name) in (1..).zip(keys) {
        assert_eq!(Key::from_u8(number).map(Key::name), Some(name));
    }
    assert_eq!(Key::from_u8(36), None);
}
