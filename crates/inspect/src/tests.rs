//! Inspection of journals on the simulated disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use disk::SimulatedDisk;
use journal::ShardId;
use journal::filing::Step;
use journal::{Commit, Journal, LastVote, LineStep, Options, Stage, Status, SteppedJournal, Vote};
use journal::{Index, Position, segment};

use super::*;

const SHARD: ShardId = ShardId(1);
const BUSY: StreamId = StreamId(7);
const TRIMMED: StreamId = StreamId(8);

fn options(entropy: u64) -> Options {
    Options {
        journal_id: 0xC0FFEE,
        entropy,
        shard_count: 2,
        segment_size: 16 << 10,
        reserve_size: 0,
        ..Options::default()
    }
}

fn settle(stepped: &mut SteppedJournal) {
    loop {
        let worked = match stepped.line.step() {
            LineStep::Worked => true,
            LineStep::Idle | LineStep::Failed => false,
            LineStep::Starved => true,
        };
        let filed = stepped.background.step(1) == Step::Worked;
        if !worked && !filed {
            return;
        }
    }
}

/// Flips a bit of the record with this payload in the first segment.
fn damage_record(disk: &SimulatedDisk, payload: &[u8]) {
    let (bytes, _) = disk.images(&segment::path(1)).unwrap();
    let mut windows = bytes.windows(payload.len());
    let at = windows.position(|window| window == payload).unwrap();
    disk.flip(&segment::path(1), at as u64 * 8).unwrap();
}

fn append(stepped: &mut SteppedJournal, stream: StreamId, payload: &[u8]) {
    let mut guard = stepped.journal.lock(SHARD, 1000);
    let appended = guard.append(stream, None, 3, payload).unwrap();
    drop(guard);
    settle(stepped);
    let status = stepped.journal.status_at(Stage::Written, appended.ticket);
    assert_eq!(status, Status::Durable);
}

/// Two streams over several segments, most of them filed, one trimmed by half: 40 records of 1000
/// bytes and 40 of 100.
fn written() -> Arc<SimulatedDisk> {
    written_with(options(1))
}

/// Like [`written`], with segments whose records were not copied.
fn retained() -> Arc<SimulatedDisk> {
    written_with(Options {
        piece_size_min: 0,
        ..options(1)
    })
}

fn written_with(options: Options) -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut stepped = Journal::open_stepped(disk.clone(), &options).unwrap();
    for number in 0..40u8 {
        append(&mut stepped, BUSY, &[number; 1000]);
        append(&mut stepped, TRIMMED, &[number; 100]);
    }
    let mut guard = stepped.journal.lock(SHARD, 1000);
    guard.trim(TRIMMED, 20).unwrap();
    drop(guard);
    settle(&mut stepped);
    disk
}

fn inspect_all(disk: &SimulatedDisk) -> Inspection {
    let request = Request {
        stream: Some(TRIMMED),
        progress: &mut |_, _| {},
    };
    inspect(disk, request).unwrap()
}

#[test]
fn undamaged_directory_is_counted_to_the_last_byte() {
    let of_state = |found: &Inspection, state| {
        let segments = found.line.segments.iter();
        segments.filter(|one| one.state == state).count()
    };
    let copied = check_undamaged(&written());
    assert_eq!(of_state(&copied, SegmentState::Retained), 0);
    let retained = check_undamaged(&retained());
    let count = of_state(&retained, SegmentState::Retained);
    assert!(count >= 3, "{count}");
    let extents = retained.extents.iter();
    assert_eq!(extents.filter(|one| one.segment.is_some()).count(), count);
    assert_eq!(of_state(&retained, SegmentState::Filed), 0);
}

fn check_undamaged(disk: &SimulatedDisk) -> Inspection {
    let found = inspect_all(disk);
    assert!(found.is_whole(), "{:?} {:?}", found.damage, found.missing);
    assert_eq!((found.journal_id, found.shard_count), (0xC0FFEE, 2));
    assert!(!found.extents.is_empty() && found.line.records > 0);
    let busy = found.streams[&(SHARD, BUSY)];
    assert_eq!(
        (busy.start, busy.next, busy.records, busy.bytes),
        (0, 40, 40, 40_000)
    );
    let trimmed = found.streams[&(SHARD, TRIMMED)];
    assert_eq!((trimmed.start, trimmed.next, trimmed.records), (20, 40, 20));
    assert_eq!(trimmed.bytes, 2000);
    let dead: u64 = found.extents.iter().map(|one| one.dead_bytes).sum();
    assert!(dead <= trimmed.dead_bytes && trimmed.dead_bytes <= 2000);
    let live = |((_, offset), (tag, bytes)): (&(ShardId, u64), &(u8, Vec<u8>))| {
        assert_eq!((*tag, bytes.as_slice()), (3, &[*offset as u8; 100][..]));
    };
    found.records.iter().for_each(live);
    assert!((20..40).all(|offset| found.records.contains_key(&(SHARD, offset))));
    let states: Vec<_> = found.line.segments.iter().map(|one| one.state).collect();
    assert_eq!(states.last(), Some(&SegmentState::Active));
    assert_eq!(found.line.torn_bytes, 0);
    assert!(found.line.durable <= found.line.end);
    found
}

/// Start, next and bytes of every stream, and the records of one.
type Content = (
    Vec<(u64, u64, u64)>,
    BTreeMap<(ShardId, u64), (u8, Vec<u8>)>,
);

/// Reads everything that a reader could get from the directory.
fn content(found: &Inspection) -> Content {
    let streams = found.streams.values();
    let streams = streams
        .map(|one| (one.start, one.next, one.bytes))
        .collect();
    (streams, found.records.clone())
}

#[test]
fn inspect_reports_every_flipped_bit_that_matters() {
    check_flipped_bits(&written());
}

#[test]
fn inspect_reports_every_flipped_bit_of_retained_segments_that_matters() {
    check_flipped_bits(&retained());
}

fn check_flipped_bits(whole: &SimulatedDisk) {
    let expected = content(&inspect_all(whole));
    let mut rng = fastrand::Rng::with_seed(7);
    let mut named = 0;
    for (path, size) in whole.files() {
        for _ in 0..150 {
            let disk = whole.fork();
            let byte = rng.u64(..size);
            disk.flip(&path, byte * 8 + rng.u64(..8)).unwrap();
            let request = Request {
                stream: Some(TRIMMED),
                progress: &mut |_, _| {},
            };
            let found = match inspect(&disk, request) {
                Ok(found) => found,
                // A version from the future.
                Err(InspectError::Newer(message)) => {
                    assert!(message.contains(&path), "{message}");
                    continue;
                }
                Err(error) => panic!("{path} at {byte}: {error}"),
            };
            if found.is_whole() {
                assert_eq!(content(&found), expected, "{path} at {byte}");
                continue;
            }
            let is_in = |one: &Damage| {
                one.path == path && (one.offset..=one.offset + one.length).contains(&byte)
            };
            assert!(
                found.damage.iter().any(is_in),
                "{path} at {byte}: {:?}",
                found.damage
            );
            named += 1;
        }
    }
    assert!(named > 300, "{named}");
}

#[test]
fn a_damaged_block_names_the_streams_whose_records_it_held() {
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut stepped = Journal::open_stepped(disk.clone(), &options(1)).unwrap();
    for number in 0..4u8 {
        append(&mut stepped, BUSY, &[number; 300]);
        append(&mut stepped, TRIMMED, &[number; 300]);
    }
    drop(stepped);
    // The third block with records holds the second record of the first stream.
    damage_record(&disk, &[1; 300]);
    let found = inspect_all(&disk);
    assert_eq!(found.damage.len(), 1);
    let damage = &found.damage[0];
    assert_eq!(damage.path, segment::path(1));
    assert!(damage.positions.is_some());
    let dependent = Dependent {
        shard: SHARD,
        stream: Some(BUSY),
        first: Some(1),
        evidence: Evidence::Claim,
    };
    assert_eq!(damage.dependents, [dependent]);
    let missing = MissingRecords {
        shard: SHARD,
        stream: BUSY,
        first: 1,
        last: 1,
    };
    assert_eq!(found.missing, [missing]);
}

#[test]
fn a_damaged_page_names_the_streams_that_the_index_knows_there() {
    let disk = written();
    let path = inspect_all(&disk).extents[0].path.clone();
    disk.flip(&path, 200 * 8).unwrap();
    let found = inspect_all(&disk);
    let damage = &found.damage[0];
    assert_eq!((damage.path.as_str(), damage.offset), (path.as_str(), 64));
    assert!(damage.offset + damage.length > 200);
    let first = damage.dependents[0];
    assert_eq!((first.stream, first.first), (Some(BUSY), Some(0)));
    assert_eq!(first.evidence, Evidence::Index);
    assert_eq!((found.missing[0].stream, found.missing[0].first), (BUSY, 0));
}

#[test]
fn missing_file_is_named() {
    let whole = retained();
    let found = inspect_all(&whole);
    let extent = found.extents[0].path.clone();
    let segment = segment::path(found.extents[0].segment.unwrap());
    let active = found.line.segments.last().unwrap().path.clone();
    for path in [extent, segment, active, manifest::PATH.to_owned()] {
        let disk = whole.fork();
        disk.remove(&path).unwrap();
        let found = inspect_all(&disk);
        let is_it = |one: &Damage| one.path == path && one.what.contains("missing");
        assert!(found.damage.iter().any(is_it), "{path}: {:?}", found.damage);
    }
}

#[test]
fn torn_write_is_not_reported_as_damage() {
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut stepped = Journal::open_stepped(disk.clone(), &options(1)).unwrap();
    append(&mut stepped, BUSY, b"acked");
    drop(stepped);
    let whole = inspect_all(&disk);
    let end = whole.line.end.0;
    // The front of a block whose end was never written.
    let file = disk.open(&segment::path(1)).unwrap();
    let (bytes, _) = disk.images(&segment::path(1)).unwrap();
    file.write_at(&bytes[4096..4096 + 80], end).unwrap();
    let torn = inspect_all(&disk);
    assert!(torn.is_whole(), "{:?}", torn.damage);
    assert_eq!((torn.line.end.0, content(&torn)), (end, content(&whole)));
}

#[test]
fn void_blocks_are_not_counted() {
    let disk = Arc::new(SimulatedDisk::new(1));
    let by_caller = Options {
        commit: Commit::ByCaller,
        ..options(1)
    };
    let mut stepped = Journal::open_stepped(disk.clone(), &by_caller).unwrap();
    stepped.journal.begin_reign(SHARD, 1);
    append(&mut stepped, BUSY, b"kept");
    let kept = stepped.journal.shard_end(SHARD).index;
    append(&mut stepped, BUSY, b"void");
    append(&mut stepped, TRIMMED, b"void");
    stepped.journal.cut(SHARD, Index(kept.0 + 1)).unwrap();
    stepped.journal.begin_reign(SHARD, 2);
    append(&mut stepped, BUSY, b"new");
    drop(stepped);
    let found = inspect_all(&disk);
    assert!(found.is_whole(), "{:?} {:?}", found.damage, found.missing);
    let busy = found.streams[&(SHARD, BUSY)];
    assert_eq!((busy.next, busy.records, busy.bytes), (2, 2, 7));
    assert!(!found.streams.contains_key(&(SHARD, TRIMMED)));
    assert_eq!(found.line.shard_ends[1], Index(kept.0 + 1));
}

#[test]
fn filed_void_blocks_are_not_reported_missing() {
    let disk = Arc::new(SimulatedDisk::new(1));
    let by_caller = Options {
        commit: Commit::ByCaller,
        ..options(1)
    };
    let mut stepped = Journal::open_stepped(disk.clone(), &by_caller).unwrap();
    stepped.journal.begin_reign(SHARD, 1);
    for number in 0..20u8 {
        append(&mut stepped, BUSY, &[number; 1000]);
    }
    let kept = Index(stepped.journal.shard_end(SHARD).index.0 - 10);
    stepped.journal.cut(SHARD, Index(kept.0 + 1)).unwrap();
    stepped.journal.begin_reign(SHARD, 2);
    append(&mut stepped, BUSY, b"new");
    stepped
        .journal
        .commit(SHARD, stepped.journal.shard_end(SHARD).index);
    // The segments before the cut are filed one after the other.
    loop {
        let found = inspect_all(&disk);
        assert!(found.is_whole(), "{:?} {:?}", found.damage, found.missing);
        assert_eq!(found.streams[&(SHARD, BUSY)].records, 11);
        if stepped.background.step(1) != Step::Worked {
            assert!(!found.extents.is_empty());
            return;
        }
    }
}

#[test]
fn last_votes_are_found_when_their_segments_are_filed() {
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut stepped = Journal::open_stepped(disk.clone(), &options(1)).unwrap();
    let vote = Vote::new(5, b"x").unwrap();
    let ticket = stepped.journal.save_vote(SHARD, vote).unwrap();
    for number in 0..40u8 {
        append(&mut stepped, BUSY, &[number; 1000]);
    }
    assert_eq!(stepped.journal.vote_status(ticket), Status::Durable);
    drop(stepped);
    let found = inspect_all(&disk);
    assert!(found.is_whole(), "{:?} {:?}", found.damage, found.missing);
    assert!(
        found.line.segments[0].sequence > 1,
        "the first one is filed"
    );
    assert_eq!(found.line.votes, [LastVote::Never, LastVote::Known(vote)]);
}

#[test]
fn accepted_loss_is_reported_but_not_as_damage() {
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut stepped = Journal::open_stepped(disk.clone(), &options(1)).unwrap();
    for number in 0..4u8 {
        append(&mut stepped, BUSY, &[number; 300]);
    }
    drop(stepped);
    damage_record(&disk, &[1; 300]);
    let accepting = Options {
        accept_loss: journal::AcceptLoss::Yes,
        ..options(2)
    };
    drop(Journal::open_stepped(disk.clone(), &accepting).unwrap());
    let found = inspect_all(&disk);
    assert_eq!(found.damage, []);
    assert!(found.line.lost_bytes > 300);
    let offsets: Vec<_> = found
        .missing
        .iter()
        .map(|one| (one.first, one.last))
        .collect();
    assert_eq!(offsets, [(1, 1)]);
    assert_eq!(found.streams[&(SHARD, BUSY)].records, 3);
    assert!(found.is_loss_accepted && found.is_whole());

    // The result is the same when the surrounding and later blocks are filed.
    for entropy in [3, 4] {
        let mut stepped = Journal::open_stepped(disk.clone(), &options(entropy)).unwrap();
        for number in 0..20u8 {
            append(&mut stepped, BUSY, &[number; 1000]);
        }
    }
    let found = inspect_all(&disk);
    assert_eq!((found.line.lost_bytes, found.missing.len()), (0, 1));
    assert!(found.filed > Position(0));
    assert!(found.is_loss_accepted && found.is_whole());
}

#[test]
fn without_a_manifest_every_extent_is_inspected() {
    check_without_manifest(&written());
    check_without_manifest(&retained());
}

fn check_without_manifest(disk: &SimulatedDisk) {
    let whole = inspect_all(disk);
    disk.remove("MANIFEST").unwrap();
    let found = inspect_all(disk);
    let paths: Vec<_> = found.damage.iter().map(|one| &one.path[..]).collect();
    assert_eq!(paths, ["MANIFEST"]);
    assert_eq!(found.extents, whole.extents);
    assert_eq!(found.streams, whole.streams);
    assert!(!found.is_whole());

    let extent = &whole.extents[0];
    // The segment of an extent that cannot be opened counts as one of the line.
    let is_alone = extent.segment.is_none();
    let bytes = [20, extent.size - 10].into_iter();
    for byte in bytes.chain(is_alone.then_some(100)) {
        let disk = disk.fork();
        disk.flip(&extent.path, byte * 8).unwrap();
        let found = inspect_all(&disk);
        assert!(found.damage.len() == 2 || !is_alone, "{:?}", found.damage);
        assert!(found.damage.iter().any(|one| one.path == extent.path));
    }
}

#[test]
fn directory_without_a_journal_is_refused() {
    let disk = SimulatedDisk::new(1);
    let request = Request {
        stream: None,
        progress: &mut |_, _| {},
    };
    assert!(matches!(
        inspect(&disk, request),
        Err(InspectError::NoJournal)
    ));
}

#[test]
fn nothing_can_be_changed_through_a_read_only_disk() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), b"bytes").unwrap();
    let disk = ReadOnlyDisk::new(dir.path());
    let file = disk.open("file").unwrap();
    assert_eq!(disk.list("").unwrap(), ["file"]);
    assert!(file.write_at(b"x", 0).is_err() && file.set_size(0).is_err());
    assert!(disk.create("other").is_err() && disk.rename("file", "other").is_err());
    assert!(disk.remove("file").is_err() && disk.create_dir("dir").is_err());
    assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"bytes");
}
