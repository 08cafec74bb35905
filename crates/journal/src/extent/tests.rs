use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;

use super::cursor::Entries;
use super::*;
use crate::disk::Disk;
use crate::disk::simulated::SimulatedDisk;
use crate::{Index, Position, ShardId, StreamId};

const IDENTITY: Identity = Identity {
    journal_id: 0x0123_4567_89ab_cdef,
    shard: ShardId(3),
    number: 7,
    begin: Position(4096),
    end: Position(8192),
    index: Index(40),
    term: 2,
};

mod in_place;
mod located;

/// Records: offset, time, payload.
type Records = Vec<(u64, u64, Vec<u8>)>;

/// A stream with its start, its next and its records.
type Stream = (u64, u64, u64, Records);

fn disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    disk.create_dir(DIRECTORY).unwrap();
    disk
}

fn open(disk: &dyn Disk, identity: Identity) -> Result<Extent, ExtentError> {
    Extent::open(disk, identity, &mut RetainedSegments::default())
}

fn write(disk: &dyn Disk, identity: Identity, streams: &[Stream]) -> Arc<Extent> {
    let mut writer = Writer::create(disk, identity).unwrap();
    for (stream, start, next, records) in streams {
        let entry = Entry {
            start: *start,
            next: *next,
            ..Entry::new(StreamId(*stream))
        };
        writer.stream(&entry).unwrap();
        for (offset, time_ms, payload) in records {
            let stream = StreamId(*stream);
            let record = RecordRef {
                stream,
                offset: *offset,
                time_ms: *time_ms,
                tag: 9,
                payload,
            };
            writer.record(&record).unwrap();
        }
    }
    let size = writer.finish().unwrap();
    disk.rename(&identity.path_unfinished(), &identity.path())
        .unwrap();
    let extent = open(disk, identity).unwrap();
    assert_eq!(extent.size(), size);
    Arc::new(extent)
}

fn read(extent: &Extent, stream: u64, from: u64) -> Records {
    let mut found = Vec::new();
    let flow = extent.read(StreamId(stream), from, &mut |page, item| {
        assert_eq!(item.tag, 9);
        found.push((item.offset, item.time_ms, page.slice(item.payload).to_vec()));
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    found
}

/// Reads all records in every possible way.
fn read_all(disk: &dyn Disk, identity: Identity) -> Result<(), ExtentError> {
    let extent = Arc::new(open(disk, identity)?);
    let mut entries = Entries::new(extent.clone())?;
    let mut cursor = Cursor::new(extent.clone());
    while let Some(entry) = entries.peek().copied() {
        let _ = extent.read(entry.stream, 0, &mut |_, _| ControlFlow::Continue(()))?;
        extent.bytes_below(entry.stream, u64::MAX)?;
        while cursor.take(entry.stream)?.is_some() {}
        entries.advance()?;
    }
    Ok(())
}

/// A few streams of which one spans pages and one has no record.
fn sample() -> Vec<Stream> {
    let long = (100..200).map(|offset| (offset, 1_000 * offset, vec![offset as u8; 1000]));
    vec![
        (
            2,
            0,
            3,
            (0..3)
                .map(|offset| (offset, 50, vec![offset as u8; 5]))
                .collect(),
        ),
        (5, 90, 200, long.collect()),
        (6, 12, 12, vec![]),
        (9, 0, 8, vec![(7, 77, vec![])]),
    ]
}

#[test]
fn extent_reads_from_every_offset() {
    let extent = write(&disk(), IDENTITY, &sample());
    for (stream, _, next, records) in sample() {
        for from in 0..next + 2 {
            let expected: Vec<_> = records
                .iter()
                .filter(|record| record.0 >= from)
                .cloned()
                .collect();
            assert_eq!(read(&extent, stream, from), expected);
        }
    }
    assert_eq!(read(&extent, 3, 0), []);
    assert_eq!(read(&extent, 99, 0), []);
    assert!(extent.index.records.len() > 5);
}

#[test]
fn extents_with_only_earlier_records_are_skipped() {
    let disk = disk();
    let mut set = ExtentSet::default();
    for number in 0..5 {
        let identity = Identity { number, ..IDENTITY };
        let offsets = 100 * number..100 * (number + 1);
        let records = offsets.map(|offset| (offset, 50, vec![offset as u8; 1000]));
        let others = (0..50).map(|offset| (50 * number + offset, 50, vec![7; 1000]));
        let next = 100 * (number + 1);
        let streams = [
            (4, 0, 50 * (number + 1), others.collect()),
            (5, 0, next, records.collect()),
        ];
        set = set.with(IDENTITY.shard, &[], write(&disk, identity, &streams));
    }
    for from in [0, 99, 100, 250, 399, 400, 499] {
        let before = disk.read();
        let mut offsets = Vec::new();
        let flow = set.read(IDENTITY.shard, StreamId(5), from, &mut |record| {
            assert_eq!(record.payload, vec![record.offset as u8; 1000]);
            offsets.push(record.offset);
            ControlFlow::Continue(())
        });
        assert!(flow.unwrap().is_continue() && offsets.into_iter().eq(from..500));
        let read = disk.read() - before;
        // Its own bytes, and two pages of 16 KiB for each extent that it begins in or ends in.
        assert!(read < 1_020 * (500 - from) + 6 * 33_000, "{from}: {read}");
        let one = disk.read();
        let first = set.read(IDENTITY.shard, StreamId(5), from, &mut |_| {
            ControlFlow::Break(())
        });
        assert!(first.unwrap().is_break());
        let one = disk.read() - one;
        assert!(one < 2 * 17_000, "{from}: {one}");
    }
}

#[test]
fn stream_table_has_every_stream() {
    let extent = write(&disk(), IDENTITY, &sample());
    let entry = extent.entry(StreamId(5)).unwrap().unwrap();
    assert_eq!((entry.start, entry.first, entry.next), (90, 100, 200));
    assert_eq!((entry.records, entry.bytes), (100, 100_000));
    let entry = extent.entry(StreamId(6)).unwrap().unwrap();
    assert_eq!(
        (entry.start, entry.first, entry.next, entry.records),
        (12, 12, 12, 0)
    );
    assert_eq!(extent.entry(StreamId(7)).unwrap(), None);
    assert_eq!((extent.streams(), extent.bytes()), (4, 100_015));
}

#[test]
fn sizes_and_times_map_to_exact_offsets() {
    let extent = write(&disk(), IDENTITY, &sample());
    let entry = extent.entry(StreamId(5)).unwrap().unwrap();
    for count in 0..=100 {
        let offset = 100 + count;
        assert_eq!(
            extent.bytes_below(StreamId(5), offset).unwrap(),
            1000 * count
        );
        assert_eq!(
            extent.offset_behind_bytes(&entry, 1000 * count).unwrap(),
            offset
        );
        assert_eq!(
            extent
                .offset_behind_bytes(&entry, 1000 * count + 1)
                .unwrap(),
            200.min(offset + 1)
        );
        let by_time = extent
            .offset_for_time(StreamId(5), 0, 1000 * offset - 999)
            .unwrap();
        assert_eq!(by_time, (offset < 200).then_some(offset));
    }
}

#[test]
fn record_larger_than_a_page_gets_its_own_page() {
    let large = vec![7; 100_000];
    let streams = [(
        1,
        0,
        3,
        vec![
            (0, 1, vec![1; 10]),
            (1, 2, large.clone()),
            (2, 3, vec![2; 10]),
        ],
    )];
    let extent = write(&disk(), IDENTITY, &streams);
    assert_eq!(extent.index.records.len(), 3);
    assert_eq!(read(&extent, 1, 1), [(1, 2, large), (2, 3, vec![2; 10])]);
}

#[test]
fn writer_refuses_unsorted_records() {
    let disk = disk();
    let mut writer = Writer::create(&disk, IDENTITY).unwrap();
    let record = |stream, offset| RecordRef {
        stream: StreamId(stream),
        offset,
        time_ms: 0,
        tag: 0,
        payload: b"",
    };
    writer.stream(&Entry::new(StreamId(4))).unwrap();
    assert!(writer.stream(&Entry::new(StreamId(4))).is_err());
    assert!(writer.record(&record(5, 0)).is_err());
    writer.record(&record(4, 8)).unwrap();
    assert!(writer.record(&record(4, 8)).is_err());
    assert!(writer.record(&record(4, u64::MAX)).is_err());
}

#[test]
fn an_extent_of_another_journal_or_newer_format_is_refused() {
    let disk = disk();
    write(&disk, IDENTITY, &sample());
    let other = Identity {
        journal_id: 1,
        ..IDENTITY
    };
    assert!(matches!(
        open(&disk, other),
        Err(ExtentError::Damaged { .. })
    ));
    disk.open(&IDENTITY.path())
        .unwrap()
        .write_at(&[3], 4)
        .unwrap();
    let error = open(&disk, IDENTITY).unwrap_err();
    assert_eq!(
        error.to_string(),
        "extents/0003-000000000007.ext has format version 3, and this build reads up to 2"
    );
}

#[test]
fn a_page_copied_to_another_position_is_refused() {
    let disk = disk();
    let extent = write(&disk, IDENTITY, &sample());
    let (from, to) = (extent.index.records_page(2), extent.index.records_page(3));
    assert_eq!(from.1, to.1);
    let file = disk.open(&IDENTITY.path()).unwrap();
    let mut page = vec![0; from.1 as usize];
    file.read_at(&mut page, from.0).unwrap();
    file.write_at(&page, to.0).unwrap();
    let error = read_all(&disk, IDENTITY).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("damaged at byte {}", to.0))
    );
}

#[test]
fn every_single_flipped_bit_is_an_error() {
    let disk = disk();
    let streams = [
        (1, 0, 2, vec![(0, 5, b"abc".to_vec()), (1, 6, vec![])]),
        (8, 3, 3, vec![]),
    ];
    let size = write(&disk, IDENTITY, &streams).size();
    let file = disk.open(&IDENTITY.path()).unwrap();
    let mut bytes = vec![0; size as usize];
    file.read_at(&mut bytes, 0).unwrap();
    for bit in 0..size * 8 {
        let place = bit / 8;
        let byte = bytes[place as usize];
        file.write_at(&[byte ^ (1 << (bit % 8))], place).unwrap();
        assert!(read_all(&disk, IDENTITY).is_err(), "bit {bit}");
        file.write_at(&[byte], place).unwrap();
    }
    read_all(&disk, IDENTITY).unwrap();
}

#[test]
fn truncated_or_extended_extent_is_an_error() {
    let disk = disk();
    let size = write(&disk, IDENTITY, &sample()).size();
    let file = disk.open(&IDENTITY.path()).unwrap();
    file.set_size(size + 64).unwrap();
    assert!(open(&disk, IDENTITY).is_err());
    for cut in [0, 1, 63, 64, 200, 20_000, size - 1] {
        file.set_size(cut).unwrap();
        assert!(open(&disk, IDENTITY).is_err());
    }
}

/// The format of version 1, which every later build reads. The file is never written again.
#[test]
fn the_extent_format_matches_the_golden_file_of_version_1() {
    let golden = include_bytes!("../../tests/fixtures/v1/extent.ext");
    let streams = [
        (
            2,
            0,
            3,
            vec![
                (0, 1_700_000_000_000, b"zero".to_vec()),
                (2, 1_700_000_000_001, vec![]),
            ],
        ),
        (
            300,
            7,
            10,
            vec![
                (8, 1_600_000_000_000, vec![0x5a; 17_000]),
                (9, 5, b"nine".to_vec()),
            ],
        ),
        (u64::MAX, 12, 12, vec![]),
    ];
    let disk = disk();
    write(&disk, IDENTITY, &streams);
    let file = disk.open(&IDENTITY.path()).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    assert!(bytes == golden);

    let old = SimulatedDisk::new(1);
    old.create_dir(DIRECTORY).unwrap();
    old.create(&IDENTITY.path())
        .unwrap()
        .write_at(golden, 0)
        .unwrap();
    let extent = open(&old, IDENTITY).unwrap();
    for (stream, _, _, records) in streams {
        assert_eq!(read(&extent, stream, 0), records);
    }
}

/// Streams in order, with gaps in the offsets, times that go back, and payloads of all sizes.
fn streams() -> impl Strategy<Value = Vec<Stream>> {
    let payload = prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..60),
        2 => (0..6000_usize).prop_map(|size| vec![0xee; size]),
        1 => (0..40_000_usize).prop_map(|size| vec![0xdd; size]),
    ];
    let record = (1..4_u64, any::<u64>(), payload);
    let stream = (
        1..u64::MAX / 40,
        0..9_u64,
        proptest::collection::vec(record, 0..30),
    );
    proptest::collection::vec(stream, 0..30).prop_map(|streams| {
        let mut id = 0;
        let build = |(step, start, records): (u64, u64, Records)| {
            id += step;
            let mut next = start;
            let place = |(gap, time, payload)| {
                let offset = next + gap - 1;
                next = offset + 1;
                (offset, time, payload)
            };
            let records = records.into_iter().map(place).collect();
            (id, start, next, records)
        };
        streams.into_iter().map(build).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sorted_records_are_read_back(streams in streams(), from in 0..60_u64, at in any::<prop::sample::Index>()) {
        let extent = write(&disk(), IDENTITY, &streams);
        let mut cursor = Cursor::new(extent.clone());
        for (id, start, next, records) in &streams {
            let entry = extent.entry(StreamId(*id)).unwrap().unwrap();
            prop_assert_eq!((entry.start, entry.next), (*start, *next));
            let wanted: Vec<_> = records.iter().filter(|record| record.0 >= from).cloned().collect();
            prop_assert_eq!(read(&extent, *id, from), wanted.clone());
            let below: usize = records.iter().filter(|record| record.0 < from).map(|record| record.2.len()).sum();
            prop_assert_eq!(extent.bytes_below(StreamId(*id), from).unwrap(), below as u64);
            cursor.seek(StreamId(*id), from).unwrap();
            for (offset, time_ms, payload) in wanted {
                let taken = cursor.take(StreamId(*id)).unwrap().unwrap();
                let record = taken.record();
                prop_assert_eq!((record.offset, record.time_ms, record.payload), (offset, time_ms, &payload[..]));
            }
            prop_assert!(cursor.take(StreamId(*id)).unwrap().is_none());
        }
        if !streams.is_empty() {
            let (id, _, next, records) = &streams[at.index(streams.len())];
            let entry = extent.entry(StreamId(*id)).unwrap().unwrap();
            let total: u64 = records.iter().map(|record| record.2.len() as u64).sum();
            for bytes in [0, 1, total / 3, total / 2, total] {
                let mut below = 0;
                let expected = records.iter().find(|record| {
                    let enough = below >= bytes;
                    below += record.2.len() as u64;
                    enough
                });
                let found = extent.offset_behind_bytes(&entry, bytes).unwrap();
                prop_assert_eq!(found, expected.map_or(*next, |record| record.0));
            }
        }
    }

    #[test]
    fn flipped_bit_in_an_extent_is_an_error(streams in streams(), at in any::<prop::sample::Index>()) {
        let disk = disk();
        let size = write(&disk, IDENTITY, &streams).size();
        disk.flip(&IDENTITY.path(), at.index(size as usize * 8) as u64).unwrap();
        prop_assert!(read_all(&disk, IDENTITY).is_err());
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), count in any::<u32>()) {
        let head = page::Head { kind: page::Kind::Records, count, before: 0 };
        let mut records = records::Walk::new(head);
        while let Ok(Some(item)) = records.next(&bytes) {
            prop_assert!(item.payload.end <= bytes.len());
        }
        let mut entries = streams::Walk::new(head);
        while let Ok(Some(entry)) = entries.next(&bytes) {
            prop_assert!(entry.erased <= entry.start && entry.start <= entry.next);
        }
        let salt = page::Salt { journal_id: 0, number: 0 };
        let mut page = vec![0; page::HEADER_SIZE];
        page.extend_from_slice(&bytes);
        page::seal(&mut page, 0, page::Head { kind: page::Kind::Index, count, before: 3 }, salt, 640);
        let _ = index::Index::open(&page, frame::Layout::Pages, salt, 64, 640);
        page.drain(..page::HEADER_SIZE);
        page.splice(0..0, [0; page::HEADER_SIZE]);
        page::seal(&mut page, 0, page::Head { kind: page::Kind::Pieces, count, before: 3 }, salt, 640);
        let _ = index::Index::open(&page, frame::Layout::InPlace, salt, 64, 640);
        let mut pieces = records::Walk::of_piece(count, 7);
        while let Ok(Some(item)) = pieces.next(&bytes) {
            prop_assert!(item.payload.end <= bytes.len());
        }
    }
}
