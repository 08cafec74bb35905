//! Damage to acknowledged data is found, named, never served and never silently cut.

use super::*;
use crate::filing::Step;

/// Appends twenty acknowledged records to a few segments. Returns the number of the last segment
/// with blocks.
fn written(disk: &Arc<SimulatedDisk>) {
    let mut stepped = open(disk, 1);
    for number in 0..20u8 {
        stepped.append_durably(StreamId(u64::from(number % 2)), &[number; 1000]);
    }
}

fn refusal(disk: &Arc<SimulatedDisk>) -> OpenError {
    Journal::open_stepped(disk.clone(), &options(2)).unwrap_err()
}

fn accepting() -> Options {
    Options {
        accept_loss: AcceptLoss::Yes,
        ..options(3)
    }
}

#[test]
fn a_flipped_bit_in_an_acked_block_is_refused_and_named() {
    for (sequence, byte) in [(1, 4200), (1, 9000), (2, 5000), (2, 4096 + 20)] {
        let disk = disk();
        written(&disk);
        disk.flip(&segment::path(sequence), byte * 8 + 3).unwrap();
        let OpenError::Line(LineError::Damaged(report)) = refusal(&disk) else {
            panic!("the damage is not named");
        };
        let range = &report.ranges[0];
        assert_eq!(range.path, segment::path(sequence));
        assert!((range.offset..range.offset + range.length).contains(&byte));
        assert_eq!(report.records.len(), 1, "{report}");
        assert!(report.to_string().contains("loses its records"), "{report}");
    }
}

#[test]
fn an_accepted_loss_is_recorded_once_and_other_records_survive() {
    let disk = disk();
    written(&disk);
    disk.flip(&segment::path(1), 9000 * 8).unwrap();
    let mut stepped = Journal::open_stepped(disk.clone(), &accepting()).unwrap();
    let lost = stepped.recovery.lost.records.clone();
    assert_eq!(lost.len(), 1);
    let check = |stepped: &SteppedJournal| {
        let mut offsets = Vec::new();
        for stream in 0..2 {
            let read = stepped
                .journal
                .read(SHARD, StreamId(stream), 0, ALL)
                .unwrap();
            offsets.extend(read.records.iter().map(|record| (stream, record.offset)));
        }
        assert_eq!(offsets.len(), 19);
        assert!(!offsets.contains(&(lost[0].stream.0, lost[0].first)));
    };
    check(&stepped);
    assert_eq!(stepped.append_durably(STREAM, b"x").offset, 0);
    drop(stepped);
    let stepped = open(&disk, 4);
    assert!(stepped.recovery.lost.is_empty());
    check(&stepped);
}

#[test]
fn broken_tail_followed_by_a_hint_is_damage() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    stepped.append(STREAM, b"acked");
    assert_eq!(stepped.line.step(), LineStep::Worked);
    assert_eq!(stepped.line.step(), LineStep::Worked, "the hint");
    drop(stepped);
    disk.flip(&segment::path(1), 4096 * 8 + 700).unwrap();
    assert!(matches!(
        refusal(&disk),
        OpenError::Line(LineError::Damaged(_))
    ));
}

/// Damages the body of the last block, which must not be taken for a torn write.
fn assert_last_block_is_trusted(disk: &Arc<SimulatedDisk>, stepped: SteppedJournal, what: &str) {
    let location = {
        let state = stepped.journal.shared().shards[1].state.lock();
        state.tail.location(state.tail.last()).unwrap()
    };
    drop(stepped);
    let (sequence, offset) = (location.position.0 >> 14, location.position.0 % (16 << 10));
    disk.flip(&segment::path(sequence + 1), (offset + 100) * 8)
        .unwrap();
    let refused = Journal::open_stepped(disk.clone(), &options(2));
    assert!(
        matches!(refused, Err(OpenError::Line(LineError::Damaged(_)))),
        "{what}"
    );
}

#[test]
fn hint_follows_the_last_block_at_any_segment_end() {
    for size in (4900..5120).step_by(8) {
        let disk = disk();
        let mut stepped = open(&disk, 1);
        stepped.prepare_spare();
        stepped.append(STREAM, &[1; 7000]);
        assert_eq!(stepped.line.step(), LineStep::Worked);
        stepped.append_durably(STREAM, &vec![2; size]);
        assert_last_block_is_trusted(&disk, stepped, &format!("{size} bytes"));
    }
}

#[test]
fn line_without_spare_segments_still_writes_its_hint() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    while stepped.journal.shared().spares.take().is_some() {}
    let acked = stepped.append(STREAM, &[1; 7000]);
    assert_eq!(stepped.line.step(), LineStep::Worked);
    let waiting = stepped.append(STREAM, &[2; 7000]);
    assert_eq!(stepped.line.step(), LineStep::Worked, "the hint");
    assert_eq!(stepped.line.step(), LineStep::Starved);
    assert_eq!(stepped.journal.status(acked.ticket), Status::Durable);
    assert_eq!(stepped.journal.status(waiting.ticket), Status::Pending);
    assert_last_block_is_trusted(&disk, stepped, "starved");
}

#[test]
fn broken_tail_without_a_hint_is_torn() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    stepped.append(STREAM, b"perhaps acked");
    assert_eq!(stepped.line.step(), LineStep::Worked);
    drop(stepped);
    disk.flip(&segment::path(1), 4096 * 8 + 700).unwrap();
    let stepped = open(&disk, 2);
    assert!(stepped.recovery.torn_bytes >= 72);
}

#[test]
fn damage_while_running_is_found_by_the_read() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    stepped.append_durably(STREAM, &[5; 100]);
    stepped.line.forget_tail();
    disk.flip(&segment::path(1), (4096 + 150) * 8).unwrap();
    let error = stepped.journal.read(SHARD, STREAM, 0, ALL).unwrap_err();
    let position = Position(4096);
    assert!(
        matches!(error, ReadError::Damaged { position: at } if at == position),
        "{error}"
    );
}

#[test]
fn missing_segments_missing_manifests_and_foreign_segments_are_refused() {
    let disk = disk();
    written(&disk);
    let (other, missing) = (disk.fork(), disk.fork());
    disk.remove("MANIFEST").unwrap();
    assert!(matches!(refusal(&disk), OpenError::NoManifest));
    let missing = Arc::new(missing);
    missing.remove(&segment::path(1)).unwrap();
    let error = refusal(&missing).to_string();
    assert!(error.contains(&segment::path(1)), "{error}");
    let other = Arc::new(other);
    let elsewhere = self::disk();
    let foreign = Options {
        journal_id: 5,
        ..options(1)
    };
    drop(Journal::open_stepped(elsewhere.clone(), &foreign).unwrap());
    let mut bytes = vec![0; 16 << 10];
    let path = segment::path(1);
    elsewhere
        .open(&path)
        .unwrap()
        .read_at(&mut bytes, 0)
        .unwrap();
    other.open(&path).unwrap().write_at(&bytes, 0).unwrap();
    let error = refusal(&other);
    assert!(error.to_string().contains("belongs to journal"), "{error}");
}

/// Thirty records of two streams in three segments.
fn write_three_segments(disk: &Arc<SimulatedDisk>) {
    let mut stepped = open(disk, 1);
    for number in 0..30u8 {
        stepped.append_durably(StreamId(u64::from(number % 2)), &[number; 1000]);
    }
    assert_eq!(stepped.journal.stats().segments, 3);
}

/// Returns how many of the thirty records are there, each unchanged.
fn intact_records(stepped: &SteppedJournal) -> usize {
    let of = |stream: u64| {
        let journal = &stepped.journal;
        let read = journal.read(SHARD, StreamId(stream), 0, ALL).unwrap();
        for record in &read.records {
            let number = 2 * record.offset + stream;
            assert_eq!(record.payload[..], [number as u8; 1000]);
        }
        read.records.len()
    };
    of(0) + of(1)
}

/// Checks that the loss is refused, accepted once, and then of no effect. Returns the lost and
/// remaining records.
fn accept(disk: &Arc<SimulatedDisk>) -> (DamageReport, usize) {
    let OpenError::Line(LineError::Damaged(report)) = refusal(disk) else {
        panic!("the damage is not named");
    };
    let stepped = Journal::open_stepped(disk.clone(), &accepting()).unwrap();
    assert_eq!(stepped.recovery.lost, *report);
    let count = intact_records(&stepped);
    drop(stepped);
    let mut rng = fastrand::Rng::with_seed(1);
    disk.crash(&mut rng);
    for entropy in 4..7 {
        let mut stepped = open(disk, entropy);
        assert!(stepped.recovery.lost.is_empty());
        assert_eq!(intact_records(&stepped), count);
        // The accepted loss is filed like any block.
        while stepped.background.step(1000) == Step::Worked {
            assert_eq!(
                intact_records(&open(&Arc::new(disk.fork()), 100 + entropy)),
                count
            );
        }
        assert_ne!(stepped.background.step(1000), Step::Failed);
        assert_eq!(intact_records(&stepped), count);
    }
    (*report, count)
}

#[test]
fn segment_without_header_loses_no_record() {
    for sequence in 1..4 {
        let disk = disk();
        write_three_segments(&disk);
        disk.flip(&segment::path(sequence), 100).unwrap();
        let (report, count) = accept(&disk);
        let path = segment::path(sequence);
        let ranges = report
            .ranges
            .iter()
            .map(|range| (&range.path, range.length));
        assert_eq!(ranges.collect::<Vec<_>>(), [(&path, 4096)]);
        assert!(report.records.is_empty(), "{report}");
        assert_eq!(count, 30);
    }
}

#[test]
fn missing_segment_between_others_is_lost_as_a_whole() {
    for sequence in 1..3 {
        let disk = disk();
        write_three_segments(&disk);
        disk.remove(&segment::path(sequence)).unwrap();
        let (report, count) = accept(&disk);
        let path = segment::path(sequence);
        assert!(report.ranges.iter().all(|range| range.path == path));
        assert_eq!(report.blocks.len(), 1, "{report}");
        assert_eq!(report.records.len(), 2, "{report}");
        let lost: u64 = report
            .records
            .iter()
            .map(|lost| lost.last + 1 - lost.first)
            .sum();
        assert_eq!(count as u64, 30 - lost);
        assert!((8..=12).contains(&lost), "{report}");
    }
}

#[test]
fn segment_without_header_and_first_block_is_lost() {
    for sequence in 1..4 {
        let disk = disk();
        write_three_segments(&disk);
        for byte in [50, 4096 + 90] {
            disk.flip(&segment::path(sequence), byte * 8).unwrap();
        }
        let (report, count) = accept(&disk);
        let length: u64 = report.ranges.iter().map(|range| range.length).sum();
        assert!(length > 10_000, "{report}");
        assert!((18..=22).contains(&count), "{count}");
    }
}

#[test]
fn two_consecutive_segments_without_header_are_refused() {
    let disk = disk();
    write_three_segments(&disk);
    for sequence in [1, 2] {
        disk.flip(&segment::path(sequence), 100).unwrap();
    }
    let accepted = Journal::open_stepped(disk.clone(), &accepting());
    let error = accepted.unwrap_err().to_string();
    assert!(error.contains(&segment::path(1)), "{error}");
}

#[test]
fn damaged_header_after_damaged_end_is_accepted_once() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    for number in 0..30u8 {
        stepped.append(StreamId(u64::from(number % 2)), &[number; 1000]);
        while stepped.line.step() == LineStep::Starved {
            stepped.prepare_spare();
        }
    }
    let header = {
        let segments = stepped.journal.shared().segments.lock();
        segments.open[1].header.clone()
    };
    drop(stepped);
    // The magic of the first segment's last block: no later block declares it durable.
    let last = header.previous_end.0 - 1096;
    disk.flip(&segment::path(1), last * 8).unwrap();
    disk.flip(&segment::path(2), 100).unwrap();
    let (report, count) = accept(&disk);
    assert_eq!(report.records.len(), 1, "{report}");
    assert_eq!(count, 29);
}
