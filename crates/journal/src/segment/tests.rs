use parking_lot::Mutex;

use super::*;
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind, aligned};
use crate::record::{self, RecordKind, RecordView};
use crate::{DecidedBlock, ShardId, StreamId, Vote};

const JOURNAL: u64 = 0x0123_4567_89AB_CDEF;
const SIZE: u64 = 16 << 10;

/// A file in memory.
#[derive(Debug)]
struct Memory(Mutex<Vec<u8>>);

impl File for Memory {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.0.lock();
        let from = bytes
            .get(offset as usize..offset as usize + buffer.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(from);
        Ok(())
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.0.lock();
        let end = offset as usize + from.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(from);
        Ok(from.len())
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.set_size(size.max(self.size()?))
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.lock().resize(size as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}

fn header() -> SegmentHeader {
    SegmentHeader {
        journal_id: JOURNAL,
        sequence: 2,
        base: Position(SIZE),
        size: SIZE,
        epoch: 77,
        previous_end: Position(9000),
        shards: vec![
            ShardEnd {
                index: Index(4),
                term: 1,
            },
            ShardEnd {
                index: Index(9),
                term: 2,
            },
        ],
        votes: vec![LastVote::Never; 2],
    }
}

/// A segment with three blocks: data, a trim and an erase; a hint; a cut.
fn example() -> (Segment, Vec<Position>) {
    let header = header();
    let file = Memory(Mutex::new(vec![0; SIZE as usize]));
    write_at_once(&file, &header.encode(), 0).unwrap();
    let mut ends = vec![header.first()];
    let mut first = Vec::new();
    for (stream, offset, kind, bytes) in [
        (1, 0, RecordKind::Data, &b"a record of stream 1"[..]),
        (u64::MAX, 7, RecordKind::Trim, b""),
        (3, 8, RecordKind::Erase, b""),
    ] {
        let record = RecordView {
            stream: StreamId(stream),
            offset,
            kind,
            tag: 5,
            bytes,
        };
        record::encode(&record, &mut first);
    }
    for (kind, body) in [
        (BlockKind::Records, &first[..]),
        (BlockKind::Idle, &[]),
        (BlockKind::Cut, &[]),
    ] {
        let position = *ends.last().unwrap();
        let header = BlockHeader {
            kind,
            shard: ShardId(1),
            length: (BLOCK_HEADER_SIZE + body.len()) as u32,
            position,
            epoch: header.epoch,
            hint: header.first(),
            count: if body.is_empty() { 0 } else { 3 },
            term: 2,
            index: Index(10),
            time_ms: 1_700_000_000_000,
        };
        let mut block = vec![0; BLOCK_HEADER_SIZE];
        block.extend_from_slice(body);
        header.seal(&mut block, Seed::new(JOURNAL, header.epoch));
        write_at_once(&file, &block, position.0 - SIZE).unwrap();
        ends.push(Position(position.0 + aligned(block.len() as u64)));
    }
    let segment = Segment {
        file: Arc::new(file),
        header: Arc::new(header),
    };
    (segment, ends)
}

fn bytes_of(segment: &Segment) -> Vec<u8> {
    let mut bytes = vec![0; SIZE as usize];
    segment.file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn scan_all(scan: &mut Scan) -> Vec<BlockKind> {
    std::iter::from_fn(|| {
        let block = scan.next_block().unwrap();
        block.map(|block| block.header.kind)
    })
    .collect()
}

#[test]
fn scan_finds_every_block_and_ends_after_the_last() {
    let (segment, ends) = example();
    let mut scan = Scan::new(&segment, segment.header.limit());
    assert_eq!(
        scan_all(&mut scan),
        [BlockKind::Records, BlockKind::Idle, BlockKind::Cut]
    );
    assert_eq!(scan.position(), ends[3]);
    let mut scan = Scan::new(&segment, ends[2]);
    assert_eq!(
        scan_all(&mut scan),
        [BlockKind::Records, BlockKind::Idle],
        "a sealed segment ends where its successor says"
    );
    assert_eq!(scan.position(), ends[2]);
}

#[test]
fn scan_stops_at_a_flipped_bit_and_seeks_past_it() {
    let (segment, ends) = example();
    for byte in ends[0].0..ends[0].0 + BLOCK_HEADER_SIZE as u64 + 92 {
        let mut bytes = bytes_of(&segment);
        bytes[(byte - SIZE) as usize] ^= 0x10;
        let damaged = Segment {
            file: Arc::new(Memory(Mutex::new(bytes))),
            header: segment.header.clone(),
        };
        let mut scan = Scan::new(&damaged, segment.header.limit());
        assert!(scan.next_block().unwrap().is_none(), "byte {byte}");
        assert_eq!(scan.position(), ends[0]);
        let found = scan.seek().unwrap().unwrap();
        assert_eq!((found.kind, found.position), (BlockKind::Idle, ends[1]));
        assert_eq!(
            scan_all(&mut scan),
            [BlockKind::Idle, BlockKind::Cut],
            "the scan continues from the found block"
        );
    }
}

#[test]
fn blocks_of_a_recycled_files_earlier_epoch_are_ignored() {
    let (segment, _) = example();
    let mut header = (*segment.header).clone();
    header.epoch += 1;
    let recycled = Segment {
        file: segment.file.clone(),
        header: Arc::new(header),
    };
    let mut scan = Scan::new(&recycled, recycled.header.limit());
    assert!(scan.next_block().unwrap().is_none());
    assert!(scan.seek().unwrap().is_none());
}

#[test]
fn damaged_or_newer_header_is_refused() {
    let bytes = header().encode();
    assert_eq!(SegmentHeader::decode(&bytes, "s").unwrap(), header());
    for byte in [0, 5, 11, 17, 40, 63, 70, 4095] {
        let mut damaged = bytes.clone();
        damaged[byte] ^= 1;
        let error = SegmentHeader::decode(&damaged, "s").unwrap_err();
        assert!(matches!(error, SegmentError::Damaged { .. }), "{error}");
    }
    let mut newer = bytes;
    newer[8] = FORMAT_VERSION + 1;
    let error = SegmentHeader::decode(&newer, "s").unwrap_err();
    assert_eq!(
        error.to_string(),
        "s has format version 2; this program knows up to 1"
    );
}

#[test]
fn only_names_of_segments_have_a_sequence() {
    assert_eq!(path(17), "line/00000000000000000017.seg");
    assert_eq!(sequence_of("00000000000000000017.seg"), Some(17));
    for name in [
        "spare-1.seg",
        "17.seg",
        "00000000000000000017",
        "+0000000000000000017.seg",
    ] {
        assert_eq!(sequence_of(name), None, "{name}");
    }
}

/// The fixture was written once, by an encoder that shares no code with this one. It is never
/// regenerated.
#[test]
fn version_1_is_read_and_written_unchanged() {
    let fixture: &[u8] = include_bytes!("../../tests/fixtures/v1/segment.bin");
    let (segment, ends) = example();
    let bytes = bytes_of(&segment);
    let used = (ends[3].0 - SIZE) as usize;
    assert_eq!(&bytes[..used], fixture);
    assert!(bytes[used..].iter().all(|&byte| byte == 0));
}

/// Like the fixture of segments, this one was written once by an encoder of its own.
#[test]
fn votes_members_and_blank_blocks_are_read_and_written_unchanged() {
    let fixture: &[u8] = include_bytes!("../../tests/fixtures/v1/entries.bin");
    let header = SegmentHeader {
        votes: vec![
            LastVote::Known(Vote::new(7, &[1, 0, 0, 0, 1]).unwrap()),
            LastVote::Lost,
        ],
        ..header()
    };
    let mut bytes = header.encode();
    let mut position = header.first();
    let members = DecidedBlock::members(8, Index(10), 1_700_000_000_000, 3, b"members");
    for (kind, term, index, count, body) in [
        (BlockKind::Vote, 8, 0, 0, &[2, 0, 0, 0, 0][..]),
        (BlockKind::Members, 8, 10, 1, &members.body[..]),
        (BlockKind::Blank, 9, 11, 0, b""),
    ] {
        let block = BlockHeader {
            kind,
            shard: ShardId(1),
            length: (BLOCK_HEADER_SIZE + body.len()) as u32,
            position,
            epoch: header.epoch,
            hint: header.first(),
            count,
            term,
            index: Index(index),
            time_ms: 1_700_000_000_000,
        };
        bytes.extend(block.sealed(body, header.seed()));
        bytes.extend(body);
        position = block.end();
        bytes.resize((position.0 - header.base.0) as usize, 0);
    }
    assert_eq!(bytes, fixture);

    let mut file = fixture.to_vec();
    file.resize(SIZE as usize, 0);
    let file = Arc::new(Memory(Mutex::new(file)));
    let segment = Segment::read(file, 2, JOURNAL).unwrap();
    assert_eq!(*segment.header, header);
    let mut scan = Scan::new(&segment, segment.header.limit());
    let kinds = [BlockKind::Vote, BlockKind::Members, BlockKind::Blank];
    assert_eq!(scan_all(&mut scan), kinds);
    assert_eq!(scan.position(), position);
}
