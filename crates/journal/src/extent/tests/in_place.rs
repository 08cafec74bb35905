//! Extents in place answer as extents with the same records in pages of their own.

use super::*;
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind};
use crate::record::{self, RECORD_HEADER_SIZE, RecordKind, RecordView};
use crate::segment::{self, LINE_DIR, SEGMENT_HEADER_SIZE, Segment, SegmentHeader};

/// A block: its time, and the stream and payload of each record.
pub(super) type Block = (u64, Vec<(u64, Vec<u8>)>);

pub(super) fn disk() -> SimulatedDisk {
    let disk = super::disk();
    disk.create_dir(LINE_DIR).unwrap();
    disk
}

/// A piece, with its place in the segment and its bytes.
#[derive(Clone, Debug)]
struct OwnedPiece {
    stream: u64,
    first: u64,
    last: u64,
    time_ms: u64,
    count: u32,
    place: u32,
    bytes: Vec<u8>,
}

/// The written pieces, and the same streams as input of an extent with pages.
pub(super) struct Written {
    segment: Segment,
    pieces: Vec<OwnedPiece>,
    pub(super) streams: Vec<Stream>,
}

fn header(size: u64) -> SegmentHeader {
    SegmentHeader {
        journal_id: IDENTITY.journal_id,
        sequence: 5,
        base: Position(1 << 20),
        size,
        epoch: 0x1234_5678,
        previous_end: Position(1 << 20),
        shards: vec![],
        votes: vec![],
    }
}

/// Writes a segment with these blocks. Offsets of a stream begin at its id, and have no gaps.
pub(super) fn write_segment(disk: &SimulatedDisk, size: u64, blocks: &[Block]) -> Written {
    let file = disk.create("line/spare-1.new").unwrap();
    file.set_size(size).unwrap();
    let header = header(size);
    let mut at = SEGMENT_HEADER_SIZE;
    let mut pieces: Vec<OwnedPiece> = Vec::new();
    let mut streams: Vec<Stream> = Vec::new();
    for (time_ms, records) in blocks {
        let mut block = vec![0; BLOCK_HEADER_SIZE];
        let mut current: Option<OwnedPiece> = None;
        for (id, payload) in records {
            let known = streams.iter().position(|stream| stream.0 == *id);
            let known = known.unwrap_or_else(|| {
                streams.push((*id, *id, *id, vec![]));
                streams.len() - 1
            });
            let stream = &mut streams[known];
            let offset = stream.2;
            stream.2 += 1;
            stream.3.push((offset, *time_ms, payload.clone()));
            let begin = block.len();
            let view = RecordView {
                stream: StreamId(*id),
                offset,
                kind: RecordKind::Data,
                tag: 9,
                bytes: payload,
            };
            record::encode(&view, &mut block);
            let bytes = &block[begin..];
            match &mut current {
                Some(piece)
                    if piece.stream == *id && piece.bytes.len() + bytes.len() <= PIECE_SIZE =>
                {
                    piece.last = offset;
                    piece.count += 1;
                    piece.bytes.extend_from_slice(bytes);
                }
                _ => {
                    let piece = OwnedPiece {
                        stream: *id,
                        first: offset,
                        last: offset,
                        time_ms: *time_ms,
                        count: 1,
                        place: at as u32 + begin as u32,
                        bytes: bytes.to_vec(),
                    };
                    pieces.extend(current.replace(piece));
                }
            }
        }
        pieces.extend(current);
        let block_header = BlockHeader {
            kind: BlockKind::Records,
            shard: IDENTITY.shard,
            length: block.len() as u32,
            position: Position(header.base.0 + at),
            epoch: header.epoch,
            hint: Position(0),
            count: records.len() as u32,
            term: 1,
            index: Index(1),
            time_ms: *time_ms,
        };
        block_header.seal(&mut block, header.seed());
        file.write_at(&block, at).unwrap();
        at = block_header.end().0 - header.base.0;
    }
    assert!(at <= size);
    pieces.sort_by_key(|piece| (piece.stream, piece.first));
    streams.sort();
    Written {
        segment: segment::begin(disk, file, "line/spare-1.new", header).unwrap(),
        pieces,
        streams,
    }
}

pub(super) fn write_extent(disk: &SimulatedDisk, written: &Written) -> Arc<Extent> {
    let segment = SegmentRef::new(&written.segment, 1);
    let mut writer = Writer::create_in_place(disk, IDENTITY, segment).unwrap();
    for (id, start, _, _) in &written.streams {
        let entry = Entry {
            start: *start,
            ..Entry::new(StreamId(*id))
        };
        writer.stream(&entry).unwrap();
        for piece in written.pieces.iter().filter(|piece| piece.stream == *id) {
            writer
                .piece(&PieceSummary {
                    stream: StreamId(piece.stream),
                    first: piece.first,
                    last: piece.last,
                    time_ms: piece.time_ms,
                    count: piece.count,
                    place: piece.place,
                    length: piece.bytes.len() as u32,
                    checksum: crc32c::crc32c(&piece.bytes),
                })
                .unwrap();
        }
    }
    writer.finish().unwrap();
    disk.rename(&IDENTITY.path_unfinished(), &IDENTITY.path())
        .unwrap();
    Arc::new(open(disk, IDENTITY).unwrap())
}

fn sample() -> Vec<Block> {
    let run = |stream: u64, count: usize, size: usize| {
        (0..count).map(move |number| (stream, vec![number as u8; size]))
    };
    vec![
        (1_000, run(2, 3, 5).chain(run(7, 100, 1_000)).collect()),
        (500, run(9, 1, 0).chain(run(2, 2, 30)).collect()),
        (2_001, run(7, 1, 100_000).chain(run(7, 4, 40_000)).collect()),
    ]
}

#[test]
fn pieces_end_with_their_stream_their_block_and_their_size() {
    let disk = disk();
    let written = write_segment(&disk, 1 << 20, &sample());
    let extent = write_extent(&disk, &written);
    let counts: Vec<_> = written
        .pieces
        .iter()
        .map(|piece| (piece.stream, piece.first, piece.count))
        .collect();
    let expected = [
        (2, 2, 3),
        (2, 5, 2),
        (7, 7, 64),
        (7, 71, 36),
        (7, 107, 1),
        (7, 108, 1),
        (7, 109, 1),
        (7, 110, 1),
        (7, 111, 1),
        (9, 9, 1),
    ];
    assert_eq!(counts, expected);
    assert_eq!(extent.index.records.len(), expected.len());
    assert_eq!(extent.segment().unwrap().sequence, 5);
    // The extent itself has no records, and no more than what it has of its segment.
    assert!(extent.size() < 1_000, "{}", extent.size());
    assert!(extent.data_size() > 360_000, "{}", extent.data_size());
}

#[test]
fn every_flipped_bit_of_an_extent_in_place_is_an_error() {
    let disk = disk();
    let blocks = [(
        5,
        vec![(1, b"abc".to_vec()), (1, vec![]), (8, b"x".to_vec())],
    )];
    let written = write_segment(&disk, 16 << 10, &blocks);
    let size = write_extent(&disk, &written).size();
    for bit in 0..size * 8 {
        disk.flip(&IDENTITY.path(), bit).unwrap();
        assert!(read_all(&disk, IDENTITY).is_err(), "bit {bit}");
        disk.flip(&IDENTITY.path(), bit).unwrap();
    }
    let path = written.segment_path();
    for piece in &written.pieces {
        let begin = u64::from(piece.place) * 8;
        for bit in begin..begin + piece.bytes.len() as u64 * 8 {
            disk.flip(&path, bit).unwrap();
            let error = read_all(&disk, IDENTITY).unwrap_err();
            assert_eq!(error.path(), path);
            disk.flip(&path, bit).unwrap();
        }
    }
    read_all(&disk, IDENTITY).unwrap();
    disk.remove(&path).unwrap();
    let error = open(&disk, IDENTITY).unwrap_err();
    assert!(matches!(&error, ExtentError::Io { path: missing, .. } if *missing == path));
}

impl Written {
    fn segment_path(&self) -> String {
        segment::path(self.segment.header.sequence)
    }
}

/// The format of version 2, which every later build reads. The files are never written again.
#[test]
fn the_extent_format_matches_the_golden_files_of_version_2() {
    let golden = include_bytes!("../../../tests/fixtures/v3/extent.ext");
    let golden_segment = include_bytes!("../../../tests/fixtures/v3/segment.bin");
    let blocks = [
        (
            1_700_000_000_000,
            vec![(2, b"zero".to_vec()), (2, vec![]), (300, vec![0x5a; 5_000])],
        ),
        (5, vec![(300, b"five".to_vec()), (2, b"two".to_vec())]),
    ];
    let disk = disk();
    let written = write_segment(&disk, 16 << 10, &blocks);
    write_extent(&disk, &written);
    let (extent, _) = disk.images(&IDENTITY.path()).unwrap();
    let (segment, _) = disk.images(&written.segment_path()).unwrap();
    assert!(extent == golden && segment == golden_segment);

    let old = super::in_place::disk();
    for (path, bytes) in [
        (IDENTITY.path(), &golden[..]),
        (written.segment_path(), &golden_segment[..]),
    ] {
        old.create(&path).unwrap().write_at(bytes, 0).unwrap();
    }
    let extent = open(&old, IDENTITY).unwrap();
    for (stream, _, _, records) in written.streams {
        assert_eq!(read(&extent, stream, 0), records);
    }
}

/// Payloads of consecutive records of a stream.
type Run = (u64, Vec<Vec<u8>>);

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let payload = prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..60),
        2 => (0..6_000_usize).prop_map(|size| vec![0xee; size]),
        1 => (0..50_000_usize).prop_map(|size| vec![0xdd; size]),
    ];
    let run = (1..6_u64, proptest::collection::vec(payload, 1..9));
    let block = (0..9_000_u64, proptest::collection::vec(run, 0..6));
    let flat = |(time_ms, runs): (u64, Vec<Run>)| {
        let of_run = |(stream, payloads): Run| {
            payloads
                .into_iter()
                .map(move |payload| (stream * 3, payload))
        };
        (time_ms, runs.into_iter().flat_map(of_run).collect())
    };
    proptest::collection::vec(block.prop_map(flat), 1..12)
}

/// Everything that an extent says about a stream, from an offset on.
fn answers(extent: &Arc<Extent>, stream: u64, from: u64, number: u64) -> String {
    let id = StreamId(stream);
    let entry = extent.entry(id).unwrap();
    let mut cursor = Cursor::new(extent.clone());
    cursor.seek(id, from).unwrap();
    let mut taken = Vec::new();
    while let Some(record) = cursor.take(id).unwrap() {
        taken.push(record.record().offset);
    }
    format!(
        "{entry:?} {:?} {taken:?} {:?} {:?} {:?}",
        read(extent, stream, from),
        extent.bytes_below(id, from).unwrap(),
        extent.offset_for_time(id, from, number).unwrap(),
        entry.map(|entry| extent.offset_behind_bytes(&entry, number).unwrap()),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn extent_in_place_answers_as_one_with_pages(blocks in blocks(), from in 0..60_u64, number in 0..90_000_u64) {
        let disk = disk();
        let records = blocks.iter().flat_map(|(_, records)| records);
        let bytes: usize = records.map(|(_, payload)| payload.len() + RECORD_HEADER_SIZE).sum();
        let size = (bytes as u64 + 2 * SEGMENT_HEADER_SIZE).next_multiple_of(SEGMENT_HEADER_SIZE);
        let written = write_segment(&disk, size, &blocks);
        let in_place = write_extent(&disk, &written);
        let with_pages = write(&super::disk(), IDENTITY, &written.streams);
        for stream in 0..20 {
            let answer = answers(&in_place, stream, from, number);
            prop_assert_eq!(answer, answers(&with_pages, stream, from, number), "{}", stream);
        }
        prop_assert_eq!(in_place.bytes(), with_pages.bytes());
        let visited = |extent: &Arc<Extent>| {
            let mut visited = Vec::new();
            let damaged = extent.check_records(
                &mut |record| visited.push((record.stream, record.offset, record.time_ms, record.payload.to_vec())),
                &mut |_| {},
            );
            (visited, damaged.unwrap())
        };
        prop_assert_eq!(visited(&in_place), visited(&with_pages));
    }
}
