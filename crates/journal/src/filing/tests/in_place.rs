//! Segments of long records, which are filed without a copy.

use super::*;
use crate::disk::simulated::Fault;
use crate::extent::ExtentError;

const SIZE: usize = 4_000;
const SECRET: &[u8] = b"the secret that must go";

fn world() -> World {
    World::with(Options {
        piece_size_min: 1_000,
        ..OPTIONS
    })
}

/// Appends seven long records to streams of both shards, which fill a segment, and files them.
fn fill(world: &mut World, byte: u8) {
    for number in 0..7 {
        world.append(number % 2, 1, &[byte; SIZE]);
    }
    world.roll_and_settle();
}

fn retained(world: &World) -> Vec<u64> {
    let segments = world.filer.extents().segments();
    let paths: Vec<_> = world
        .disk
        .files()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    for sequence in &segments {
        assert!(paths.contains(&segment::path(*sequence)));
    }
    let mut named = paths.iter().filter_map(|path| {
        let name = path.strip_prefix("line/")?;
        segment::sequence_of(name)
    });
    assert!(named.all(|sequence| segments.contains(&sequence)));
    segments.into_iter().collect()
}

#[test]
fn segment_of_long_records_is_filed_without_a_copy() {
    let mut world = world();
    for byte in 0..5 {
        fill(&mut world, byte);
    }
    assert_eq!(retained(&world), [1, 2, 3, 4, 5]);
    assert_eq!((world.extents(0), world.extents(1)), (5, 5));
    let totals = world.filer.totals();
    assert_eq!((totals.segments, totals.merges), (5, 0));
    assert!(totals.filed_bytes < 5 * 2 * 600, "{}", totals.filed_bytes);
    assert!(world.filer.extents().size() > 5 * 7 * SIZE as u64);
    assert_eq!(world.filer.extents().files(), 5);
    world.check();
    let mut world = world.reopen();
    world.check();
    fill(&mut world, 9);
    assert_eq!(retained(&world).len(), 6);
    world.check();
}

/// Files a segment of both shards, with trims, and returns the files of its extents and the bytes that
/// were read.
fn filed(has_no_summaries: bool) -> (Vec<Vec<u8>>, u64) {
    let mut world = world();
    world.line.state.lock().has_no_summaries = has_no_summaries;
    for number in 0..6 {
        world.append(number % 2, 3 - u64::from(number) / 2, &[number as u8; SIZE]);
        world.append(number % 2, 3 - u64::from(number) / 2, &[9; 500]);
    }
    world.trim(0, 3, 1);
    world.trim(1, 9, 0);
    world.line.roll();
    let before = world.disk.read();
    while world.line.sealed_count() > 0 {
        assert_eq!(world.filer.step(&world.line, world.now_ms), Step::Worked);
    }
    let read = world.disk.read() - before;
    assert_eq!(retained(&world), [1]);
    world.check();
    let paths = world.disk.files().into_iter().map(|(path, _)| path);
    let extents = paths.filter(|path| path.starts_with("extents/"));
    let images = extents.map(|path| world.disk.images(&path).unwrap().1);
    (images.collect(), read)
}

#[test]
fn segment_with_a_summary_is_filed_without_reading_it() {
    let (expected, read) = filed(true);
    assert_eq!(expected.len(), 2);
    assert!(read > 6 * SIZE as u64, "{read}");
    let (extents, read) = filed(false);
    assert!(extents == expected, "the extents differ");
    assert!(read < SIZE as u64, "{read}");
}

#[test]
fn segment_with_many_short_pieces_has_no_summary() {
    let world = World::with(Options {
        piece_size_min: 4_000,
        ..OPTIONS
    });
    let append = |count, size| {
        let header = BlockHeader {
            kind: BlockKind::Records,
            shard: ShardId(0),
            length: 0,
            position: Position(0),
            epoch: 0,
            hint: Position(0),
            count,
            term: 1,
            index: Index(1),
            time_ms: 0,
        };
        let mut body = Vec::new();
        for number in 0..count {
            let view = RecordView {
                stream: StreamId(u64::from(number % 2)),
                offset: u64::from(number),
                kind: RecordKind::Data,
                tag: 0,
                bytes: &vec![1; size],
            };
            record::encode(&view, &mut body);
        }
        let mut summary = SummaryBuilder::new(world.line.piece_size_min);
        let checksum = summary.add(&header, Position(0), &body);
        let pieces = summary.finish().map(|it| it[&ShardId(0)].pieces.len());
        assert_eq!(checksum.is_some(), pieces.is_some());
        pieces
    };
    assert_eq!(append(1024, 10), Some(1024));
    assert_eq!(append(1100, 10), None, "a piece has less than 4,000 bytes");
    assert_eq!(append(1100, 4_000), Some(1100));
}

#[test]
fn segment_is_copied_if_pieces_are_short_or_it_is_half_empty() {
    let mut world = world();
    for _ in 0..30 {
        world.append(0, 1, &[1; 900]);
    }
    world.roll_and_settle();
    for _ in 0..3 {
        world.append(0, 1, &[2; SIZE]);
    }
    world.roll_and_settle();
    // Long records, most of which are trimmed already.
    for _ in 0..7 {
        world.append(0, 2, &[3; SIZE]);
    }
    world.trim(0, 2, 5);
    world.roll_and_settle();
    assert_eq!(retained(&world), [0; 0]);
    assert!(world.filer.totals().filed_bytes > 40_000);
    world.check();
}

#[test]
fn segment_is_copied_if_it_has_records_to_erase() {
    let mut world = world();
    world.append(0, 50, SECRET);
    for _ in 0..6 {
        world.append(1, 1, &[1; SIZE]);
    }
    world.erase(0, 50);
    world.line.roll();
    world.run();
    assert_eq!(retained(&world), [0; 0]);
    // An erase of other records that is not due yet does not matter.
    for _ in 0..7 {
        world.append(1, 1, &[2; SIZE]);
    }
    world.line.roll();
    world.run();
    assert_eq!(retained(&world), [2]);
    world.settle();
    assert_eq!(world.files_with(SECRET), [""; 0]);
    world.check();
}

#[test]
fn void_blocks_keep_a_segment_from_being_retained() {
    let mut world = world();
    for byte in 0..5 {
        world.append(0, 1, &[byte; SIZE]);
    }
    world.line.put(BlockKind::Cut, ShardId(0), Index(5), vec![]);
    {
        let mut state = world.line.state.lock();
        state.indexes.insert(ShardId(0), 4);
        let model = state.models.get_mut(&(ShardId(0), StreamId(1))).unwrap();
        (model.next, _) = (4, model.records.remove(&4));
    }
    world.append(0, 1, &[9; SIZE]);
    world.roll_and_settle();
    assert_eq!(retained(&world), [0; 0]);
    world.check();
}

#[test]
fn later_cut_keeps_a_segment_with_a_summary_from_being_retained() {
    for (index, expected) in [(8, vec![1]), (7, vec![])] {
        let mut world = world();
        for byte in 0..7 {
            world.append(0, 1, &[byte; SIZE]);
        }
        world.line.roll();
        {
            let mut state = world.line.state.lock();
            state.sealed[0].cuts.push(Cut {
                shard: ShardId(0),
                index: Index(index),
                position: Position(SEGMENT_SIZE + 5_000),
            });
            let model = state.models.get_mut(&(ShardId(0), StreamId(1))).unwrap();
            model.records.retain(|offset, _| *offset < index - 1);
            model.next = model.records.len() as u64;
        }
        world.settle();
        assert_eq!(retained(&world), expected, "cut at {index}");
        world.check();
    }
}

#[test]
fn segment_is_removed_when_its_records_are_trimmed() {
    let mut world = world();
    fill(&mut world, 1);
    fill(&mut world, 2);
    // Of the first segment, a record of shard 0 is left: too little to retain it.
    world.trim(0, 1, 3);
    world.trim(1, 1, 3);
    world.settle();
    assert_eq!(retained(&world), [2]);
    assert!(world.filer.totals().merged_bytes < 2 * SIZE as u64);
    world.check();
    world.trim(0, 1, 8);
    world.trim(1, 1, 6);
    world.settle();
    assert_eq!(retained(&world), [0; 0]);
    let held = world.filer.extents().size();
    assert!(held < 4_000, "{held}");
    world.roll_and_settle();
    world.check();
    world.reopen().check();
}

#[test]
fn erase_in_one_shard_rewrites_all_extents_of_the_segment() {
    let mut world = world();
    for _ in 0..3 {
        world.append(0, 1, &[1; SIZE]);
        world.append(1, 2, &[2; SIZE]);
    }
    world.append(0, 50, &SECRET.repeat(100));
    world.roll_and_settle();
    fill(&mut world, 3);
    assert_eq!(retained(&world), [1, 2]);
    world.erase(0, 50);
    world.settle();
    assert_eq!(world.filer.erase_pending(), None);
    assert_eq!(world.files_with(SECRET), [""; 0]);
    assert_eq!(retained(&world), [2]);
    world.check();
}

#[test]
fn erase_continues_after_a_restart_between_the_extents_of_a_segment() {
    let mut stops = 0;
    for steps in 0..60 {
        let mut world = world();
        for _ in 0..3 {
            world.append(0, 50, &SECRET.repeat(170));
            world.append(1, 2, &[2; SIZE]);
        }
        world.roll_and_settle();
        world.erase(0, 50);
        world.line.roll();
        world.now_ms += HOUR_MS;
        for _ in 0..steps {
            world.filer.step(&world.line, world.now_ms);
        }
        let extents = world.filer.extents();
        let in_place = |shard| extents.shard(ShardId(shard))[0].segment().is_some();
        let is_broken_up = world.line.sealed_count() == 0 && in_place(0) != in_place(1);
        stops += u64::from(is_broken_up);
        if world.line.sealed_count() > 0 {
            continue;
        }
        let mut world = world.reopen();
        // As a start does that finds an erase in the extents.
        world
            .erasures
            .inherit(Position(world.line.state.lock().base));
        world.settle();
        assert_eq!(world.filer.erase_pending(), None);
        assert_eq!(world.files_with(SECRET), [""; 0], "{steps}");
        world.check();
    }
    assert!(stops > 0, "no restart between the two extents");
}

#[test]
fn retained_file_has_no_bytes_of_an_earlier_segment() {
    let mut world = world();
    // Copied, and its file is recycled.
    for _ in 0..26 {
        world.append(0, 50, &SECRET.repeat(43));
    }
    world.roll_and_settle();
    let spares = world.line.spares.clone();
    let all: Vec<_> = std::iter::from_fn(|| spares.take()).collect();
    let used = all
        .into_iter()
        .find(|it| it.path.contains("used-"))
        .unwrap();
    assert!(world.files_with(SECRET).contains(&used.path));
    spares.give_back(used.path, used.file, false).unwrap();
    for number in 0..5 {
        world.append(number % 2, 1, &[2; SIZE]);
    }
    world.roll_and_settle();
    assert_eq!(retained(&world), [2]);
    assert!(!world.files_with(SECRET).contains(&segment::path(2)));
    world.check();
    // Nothing else has to be zeroed for an erase.
    world.erase(0, 50);
    world.settle();
    assert_eq!(world.filer.erase_pending(), None);
    assert_eq!(world.files_with(SECRET), [""; 0]);
    assert_eq!(retained(&world), [2]);
}

#[test]
fn reader_holds_a_segment_that_is_removed() {
    let mut world = world();
    fill(&mut world, 1);
    let before = world.filer.extents().clone();
    let expected = read_all(&before);
    world.trim(0, 1, 4);
    world.trim(1, 1, 3);
    world.settle();
    assert_eq!(retained(&world), [0; 0]);
    assert_eq!(read_all(&before), expected);
}

#[test]
fn flipped_bit_in_a_retained_segment_is_named() {
    let mut world = world();
    fill(&mut world, 1);
    let path = segment::path(1);
    let begin = segment::SEGMENT_HEADER_SIZE + BLOCK_HEADER_SIZE as u64;
    for (byte, is_served) in [(begin - 4, true), (begin, false), (begin + 900, false)] {
        world.disk.flip(&path, byte * 8).unwrap();
        let extents = world.filer.extents();
        let read = extents.read(ShardId(0), StreamId(1), 0, &mut |_| {
            ControlFlow::Continue(())
        });
        match read {
            Ok(_) => assert!(is_served, "{byte}"),
            Err(ExtentError::Damaged {
                path: named, place, ..
            }) => {
                assert_eq!((named, place), (path.clone(), begin));
                assert!(!is_served, "{byte}");
            }
            Err(error) => panic!("{error}"),
        }
        world.disk.flip(&path, byte * 8).unwrap();
    }
    world.check();
}

#[test]
fn damage_before_a_segment_is_filed_by_its_summary_is_named_by_the_read() {
    let mut world = world();
    for number in 0..7 {
        world.append(number % 2, 1, &[1; SIZE]);
    }
    world.line.roll();
    let path = segment::path(1);
    let begin = segment::SEGMENT_HEADER_SIZE + BLOCK_HEADER_SIZE as u64;
    world.disk.flip(&path, (begin + 900) * 8).unwrap();
    world.settle();
    assert_eq!(retained(&world), [1]);
    let read = |shard| {
        let extents = world.filer.extents();
        extents.read(ShardId(shard), StreamId(1), 0, &mut |_| {
            ControlFlow::Continue(())
        })
    };
    let damage = read(0).unwrap_err();
    assert!(matches!(&damage, ExtentError::Damaged { place, .. } if *place == begin));
    assert_eq!(damage.path(), path);
    assert!(read(1).is_ok(), "the other shard's records are whole");
}

#[test]
fn segment_of_another_use_is_refused() {
    let mut world = world();
    fill(&mut world, 1);
    let file = world.disk.open(&segment::path(1)).unwrap();
    let mut header = segment::Segment::read(file.clone(), 1, JOURNAL)
        .unwrap()
        .header
        .as_ref()
        .clone();
    header.epoch += 1;
    file.write_at(&header.encode(), 0).unwrap();
    let manifest = Manifest::load(&*world.disk).unwrap().unwrap();
    let error = ExtentSet::open(&*world.disk, manifest.extents()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line/00000000000000000001.seg is damaged at byte 0: it is not the segment that the extent refers to"
    );
}

#[test]
fn segment_is_retained_when_the_disk_has_no_room_for_a_copy() {
    let mut world = world();
    world.settle();
    for number in 0..7 {
        world.append(number % 2, 1, &[1; SIZE]);
    }
    world.line.roll();
    world.disk.set_capacity(world.disk.used() + 8_000);
    for _ in 0..5 {
        world.now_ms += 2_000;
        assert_ne!(world.run(), Step::Failed, "{:?}", world.filer.failure());
    }
    assert_eq!(world.line.sealed_count(), 0);
    assert_eq!(retained(&world), [1]);
    world.check();
}

#[test]
fn failed_sync_of_an_extent_leaves_the_segment_unfiled() {
    let mut world = world();
    world.disk.fail_once(Fault::Broken, |call| {
        call.kind == crate::disk::simulated::Kind::SyncAll && call.path.starts_with("extents/")
    });
    for number in 0..7 {
        world.append(number % 2, 1, &[1; SIZE]);
    }
    world.line.roll();
    assert_eq!(world.run(), Step::Idle);
    assert_eq!((world.line.sealed_count(), world.extents(0)), (1, 0));
    world.now_ms += 1_000;
    assert_eq!(world.run(), Step::Idle);
    assert_eq!(retained(&world), [1]);
    world.check();
}

#[test]
fn spares_are_allocated_in_bulk_and_zeroed_otherwise() {
    let mut world = world();
    world.settle();
    while world.line.spares.take().is_some() {}
    world.line.state.lock().is_in_bulk = true;
    let before = world.disk.calls();
    world.run();
    let calls = world.disk.calls() - before;
    assert_eq!(
        (world.line.spares.ready(), world.line.spares.dirty()),
        (2, 0)
    );
    assert!(calls < 12, "{calls} calls for two spares");
    world
        .disk
        .crash_with(|_| crate::disk::simulated::Fate::Lost);
    let world = world.reopen();
    let spare = world.line.spares.take().unwrap();
    let mut bytes = vec![1; SEGMENT_SIZE as usize];
    spare.file.read_at(&mut bytes, 0).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 0));
}
