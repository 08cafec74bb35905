//! Bytes written to the disk, and read from it, for each appended byte, by the log, its spares, filing
//! and merges.

use super::*;
use crate::filing::Step;

/// A load: records of this size, as many per sync, to this number of streams in turn.
struct Load {
    record_size: usize,
    records_per_sync: u64,
    streams: u64,
    syncs: u64,
}

/// Records as those of topics in bulk.
const BULK: Load = Load {
    record_size: 64 << 10,
    records_per_sync: 16,
    streams: 6,
    syncs: 48,
};

/// Runs a load until everything is filed, and returns the bytes written and read for each byte of a
/// payload.
fn amplification(load: &Load, options: Options) -> (f64, f64) {
    let disk = disk();
    let options = Options {
        segment_size: 4 << 20,
        ..options
    };
    let mut stepped = Journal::open_stepped(disk.clone(), &options).unwrap();
    let payload = vec![7; load.record_size];
    let (mut number, mut now_ms) = (0, 1_000);
    let before = (disk.written(), disk.read());
    for _ in 0..load.syncs {
        for _ in 0..load.records_per_sync {
            stepped.append(StreamId(number % load.streams), &payload);
            number += 1;
        }
        now_ms += 10;
        while stepped.line.step() != LineStep::Idle {
            stepped.background.step(now_ms);
        }
        while stepped.background.step(now_ms) == Step::Worked {}
    }
    let filed = stepped.journal.filing();
    assert!(filed.filed_segments > 5, "{filed:?}");
    let bytes = (number * load.record_size as u64) as f64;
    let (written, read) = (disk.written() - before.0, disk.read() - before.1);
    (written as f64 / bytes, read as f64 / bytes)
}

#[test]
fn bulk_is_written_once_and_not_read() {
    let (now, read) = amplification(&BULK, options(1));
    assert!(now < 1.3, "{now}");
    assert!(read < 0.01, "{read}");
    let copied = Options {
        piece_size_min: u64::MAX,
        bulk_sync_size: u64::MAX,
        ..options(1)
    };
    let (copied, read) = amplification(&BULK, copied);
    assert!(copied > 2.0, "{copied}");
    assert!(read > 0.8, "{read}");
    eprintln!("bulk: {now:.2} bytes written per byte, {copied:.2} with copying");
}

#[test]
fn short_records_of_many_streams_are_copied_as_before() {
    let load = Load {
        record_size: 300,
        records_per_sync: 200,
        streams: 20_000,
        syncs: 600,
    };
    let now = amplification(&load, options(1));
    let copied = Options {
        piece_size_min: u64::MAX,
        bulk_sync_size: u64::MAX,
        ..options(1)
    };
    assert_eq!(now, amplification(&load, copied));
    eprintln!("short records: {:.2} bytes written per byte", now.0);
}
