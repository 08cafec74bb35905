//! Locating the records of a stream through extents, the line and memory.

use super::*;

fn payload(number: u64) -> Vec<u8> {
    let size = match number % 4 {
        0 => 200,
        _ => 20_000 + number as usize,
    };
    (0..size).map(|at| (number as usize + at) as u8).collect()
}

fn options_of(entropy: u64) -> Options {
    Options {
        segment_size: 256 << 10,
        ..options(entropy)
    }
}

/// Appends records of which the first are filed, the next are in a segment and the last in memory.
fn written(disk: &Arc<SimulatedDisk>, count: u64) -> SteppedJournal {
    let mut stepped = Journal::open_stepped(disk.clone(), &options_of(1)).unwrap();
    for number in 0..count {
        stepped.append(STREAM, &payload(number));
        stepped.settle_all(1000);
        if number == count - 3 {
            stepped.line.forget_tail();
        }
    }
    stepped
}

fn locate(stepped: &SteppedJournal, from: u64, limit: ReadLimit) -> Option<Read<LocatedRecord>> {
    let located = stepped
        .journal
        .locate(SHARD, STREAM, from, limit, Reach::Disk);
    located.unwrap()
}

#[test]
fn records_are_located_in_all_places_as_they_are_read() {
    for is_cached in [false, true] {
        let disk = disk();
        disk.set_cached(is_cached);
        let stepped = written(&disk, 60);
        check_all(&stepped);
        let located = locate(&stepped, 57, ALL).unwrap().records;
        let is_in_file = |it: &LocatedRecord| matches!(it.payload, StoredBytes::File(_));
        let in_files: Vec<_> = located.iter().map(is_in_file).collect();
        assert_eq!(in_files, [is_cached, false, false]);
    }
}

fn check_all(stepped: &SteppedJournal) {
    assert!(stepped.journal.stats().segments < 3, "most of it is filed");
    for from in 0..60 {
        for bytes in [1, 20_100, 70_000, usize::MAX] {
            let limit = ReadLimit { records: 10, bytes };
            let read = stepped.journal.read(SHARD, STREAM, from, limit).unwrap();
            let located = locate(stepped, from, limit).unwrap();
            assert_eq!(
                (read.start, read.next_durable),
                (located.start, located.next_durable)
            );
            let located = located.records.into_iter().map(|it| Record {
                offset: it.offset,
                time_ms: it.time_ms,
                tag: it.tag,
                payload: it.payload.into_bytes().unwrap(),
            });
            let located: Vec<_> = located.collect();
            assert_eq!(located, read.records, "{from}, {bytes}");
        }
    }
    let located = locate(stepped, 0, ALL).unwrap().records;
    let is_in_file = |it: &LocatedRecord| matches!(it.payload, StoredBytes::File(_));
    assert_eq!(located.len(), 60);
    assert!(located.iter().filter(|it| is_in_file(it)).count() > 30);
    assert!(!is_in_file(&located[59]) && !is_in_file(&located[0]) && is_in_file(&located[1]));
}

#[test]
fn located_records_stay_whole_when_their_segment_is_filed_and_others_are_written() {
    let disk = disk();
    disk.set_cached(true);
    let mut stepped = Journal::open_stepped(disk.clone(), &options_of(1)).unwrap();
    let long = [payload(1), payload(2), payload(3)];
    for payload in &long {
        stepped.append(STREAM, payload);
        stepped.append(StreamId(8), &[9; 900]);
        stepped.settle_all(1000);
    }
    stepped.line.forget_tail();
    let limit = ALL;
    let reach = Reach::Memory;
    let located = stepped.journal.locate(SHARD, STREAM, 0, limit, reach);
    let located = located.unwrap().unwrap().records;
    assert_eq!(located.len(), 3);
    // Short records, so that the segments are copied and used again.
    for _ in 0..3_000 {
        stepped.append(StreamId(8), &[9; 900]);
        stepped.settle_all(1000);
    }
    for (record, payload) in located.into_iter().zip(long) {
        assert!(matches!(record.payload, StoredBytes::File(_)));
        assert_eq!(record.payload.into_bytes().unwrap(), payload);
    }
    assert_eq!(stepped.read(STREAM).len(), 3);
}

#[test]
fn locating_without_the_disk_needs_records_in_memory() {
    let stepped = written(&disk(), 60);
    let locate = |from| {
        stepped
            .journal
            .locate(SHARD, STREAM, from, ALL, Reach::Memory)
    };
    assert_eq!(locate(0).unwrap(), None);
    assert_eq!(locate(57).unwrap(), None, "its body was forgotten");
    assert_eq!(locate(58).unwrap().unwrap().records.len(), 2);
    let error = {
        let mut guard = stepped.journal.lock(SHARD, 0);
        guard.trim(STREAM, 59).unwrap();
        drop(guard);
        let mut stepped = stepped;
        stepped.settle();
        stepped
            .journal
            .locate(SHARD, STREAM, 0, ALL, Reach::Memory)
            .unwrap_err()
    };
    assert!(matches!(error, ReadError::Trimmed { start: 59 }));
}

#[test]
fn located_records_stay_whole_when_they_are_erased_and_no_later_read_finds_them() {
    let disk = disk();
    let mut stepped = written(&disk, 60);
    let located = locate(&stepped, 0, ALL).unwrap().records;
    stepped.journal.lock(SHARD, 1000).erase(STREAM).unwrap();
    stepped.settle_all(1000);
    assert!(stepped.background.erase_pending().is_some());
    for hour in 1..48 {
        for _ in 0..200 {
            stepped.append(StreamId(8), &[9; 900]);
            stepped.settle_all(hour * 3_600_000);
        }
    }
    assert_eq!(stepped.background.erase_pending(), None);
    assert!(stepped.read(STREAM).is_empty());
    assert_eq!(locate(&stepped, 60, ALL).unwrap().records, []);
    for (number, record) in located.into_iter().enumerate() {
        assert_eq!(record.payload.into_bytes().unwrap(), payload(number as u64));
    }
}
