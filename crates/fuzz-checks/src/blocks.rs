//! Blocks of the write-ahead log from any bytes: what is decoded is encoded unchanged, and a decided
//! block is recovered as it was accepted, or refused without a change.

use std::sync::Arc;

use bytes::Bytes;
use inspect::Inspection;
use journal::block::{
    BLOCK_HEADER_SIZE, BLOCK_MAGIC, BlockHeader, BlockKind, FORMAT_VERSION, Seed,
};
use journal::disk::SimulatedDisk;
use journal::segment::{SEGMENT_HEADER_SIZE, Segment, SegmentHeader};
use journal::{
    Commit, DecidedBlock, Index, Journal, LastVote, LineStep, OpenError, Options, ShardId,
    SteppedJournal, Vote, VoteError,
};

const SHARD: ShardId = ShardId(0);

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    header_of_block(input);
    header_of_segment(input);
    decided(input);
    members(input);
    vote(input);
    whole(input);
}

/// The input as a block's header, with its magic bytes and without those that must be zero.
fn header_of_block(input: &[u8]) {
    let mut bytes = [0; BLOCK_HEADER_SIZE];
    let size = bytes.len().min(input.len());
    bytes[..size].copy_from_slice(&input[..size]);
    bytes[..4].copy_from_slice(&BLOCK_MAGIC);
    bytes[8] = FORMAT_VERSION;
    bytes[9] %= 9;
    bytes[44..48].fill(0);
    let Some(header) = BlockHeader::parse(&bytes) else {
        return;
    };
    let seed = Seed::new(1, 2);
    let sealed = header.sealed(b"", seed);
    assert_eq!(BlockHeader::parse(&sealed), Some(header));
    assert_eq!(sealed[8..], bytes[8..]);
    let is_empty = header.length as usize == BLOCK_HEADER_SIZE;
    assert_eq!(header.is_whole(&sealed, seed), is_empty);
}

/// The input as a header, with all fields that must not be random.
fn header_of_segment(input: &[u8]) {
    let header = SegmentHeader {
        journal_id: 1,
        sequence: 1,
        base: journal::Position(0),
        size: 16 << 10,
        epoch: 2,
        previous_end: journal::Position(0),
        shards: vec![Default::default(); 64],
        votes: vec![LastVote::Never; 64],
    };
    let mut bytes = header.encode();
    let room = &mut bytes[64..];
    let size = room.len().min(input.len());
    room[..size].copy_from_slice(&input[..size]);
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    if let Ok(header) = SegmentHeader::decode(&bytes, "input") {
        let again = SegmentHeader::decode(&header.encode(), "again");
        assert_eq!(again.ok().as_ref(), Some(&header));
        assert_eq!(header.encode().len() as u64, SEGMENT_HEADER_SIZE);
    }
}

/// The input as a decided block of any kind, with any body.
fn decided(input: &[u8]) {
    let Some(([kind, term, index], body)) = input.split_first_chunk() else {
        return;
    };
    let Some(kind) = BlockKind::from_number(kind % 8) else {
        return;
    };
    append(&DecidedBlock {
        kind,
        term: u64::from(*term),
        index: Index(u64::from(index % 3)),
        time_ms: 1,
        body: Bytes::copy_from_slice(body),
    });
}

/// The input as a membership.
fn members(input: &[u8]) {
    let block = DecidedBlock::members(1, Index(1), 1, 0, input);
    assert_eq!(block.as_members().as_deref(), Some(input));
    assert!(append(&block));
}

/// Appends a block to an empty log. Returns true if it is accepted.
fn append(block: &DecidedBlock) -> bool {
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut stepped = open(&disk, 1);
    let streams = |it: &SteppedJournal| it.journal.streams(SHARD, None, usize::MAX);
    let before = (stepped.journal.last_taken(SHARD), streams(&stepped));
    if stepped.journal.append_decided(SHARD, block).is_err() {
        let after = (stepped.journal.last_taken(SHARD), streams(&stepped));
        assert_eq!(after, before);
        return false;
    }
    settle(&mut stepped);
    drop(stepped);
    let stepped = open(&disk, 2);
    assert_eq!(read_all(&stepped), std::slice::from_ref(block));
    assert!(inspected(&disk).is_whole());
    true
}

/// The input as a vote.
fn vote(input: &[u8]) {
    let vote = Vote::new(1, input);
    let is_vote = (1..=journal::VOTE_SIZE_MAX).contains(&input.len());
    assert_eq!(vote.is_some(), is_vote);
    let Some(vote) = vote else {
        return;
    };
    assert_eq!(vote.bytes(), input);
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut stepped = open(&disk, 1);
    assert!(stepped.journal.save_vote(SHARD, vote).is_ok());
    settle(&mut stepped);
    drop(stepped);
    // The first start finds the block, the second one the header that repeats it.
    for entropy in [2, 3] {
        let stepped = open(&disk, entropy);
        assert_eq!(stepped.journal.last_vote(SHARD), LastVote::Known(vote));
        assert_eq!(inspected(&disk).line.votes, [LastVote::Known(vote)]);
    }
}

/// The input as a block whose checksum is right: it is recovered, or refused by name.
fn whole(input: &[u8]) {
    let Some(([kind, shard, index, term, count], body)) = input.split_first_chunk() else {
        return;
    };
    let Some(kind) = BlockKind::from_number(kind % 9) else {
        return;
    };
    let disk = Arc::new(SimulatedDisk::new(1));
    let journal_id = open(&disk, 1).journal.id();
    let segment = Segment::open(&*disk, 1, journal_id);
    let Segment { file, header } = segment.unwrap_or_else(|error| unreachable!("{error}"));
    let block = BlockHeader {
        kind,
        shard: ShardId(u16::from(shard % 2)),
        length: (BLOCK_HEADER_SIZE + body.len()) as u32,
        position: header.first(),
        epoch: header.epoch,
        hint: header.first(),
        count: u32::from(count % 4),
        term: u64::from(*term),
        index: Index(u64::from(index % 3)),
        time_ms: 1,
    };
    let front = block.sealed(body, header.seed());
    let bytes = [&front[..], body].concat();
    let written = file.write_at(&bytes, SEGMENT_HEADER_SIZE);
    assert_eq!(written.ok(), Some(bytes.len()));
    let mut stepped = match try_open(&disk, 2) {
        Ok(stepped) => stepped,
        Err(OpenError::Line(_)) => return,
        Err(error) => unreachable!("{error}"),
    };
    let expected = usize::from(kind.is_entry());
    assert_eq!(read_all(&stepped).len(), expected);
    // A lost block stands for a loss that was accepted before.
    assert!(inspected(&disk).is_whole(), "{kind:?}");
    let saved = Vote::new(u64::MAX, b"x").map(|vote| stepped.journal.save_vote(SHARD, vote));
    let is_lost = kind == BlockKind::Lost;
    assert_eq!(
        saved.map(|it| it.err()),
        Some(is_lost.then_some(VoteError::Lost))
    );
    settle(&mut stepped);
}

fn settle(stepped: &mut SteppedJournal) {
    while stepped.line.step() == LineStep::Worked {}
}

fn read_all(stepped: &SteppedJournal) -> Vec<DecidedBlock> {
    let all = Index(1)..Index(u64::MAX);
    let read = stepped.journal.read_blocks(SHARD, all, usize::MAX);
    read.unwrap_or_else(|error| unreachable!("{error}"))
}

fn inspected(disk: &SimulatedDisk) -> Inspection {
    let request = inspect::Request {
        stream: None,
        progress: &mut |_, _| {},
    };
    let inspected = inspect::inspect(disk, request);
    inspected.unwrap_or_else(|error| unreachable!("{error}"))
}

fn open(disk: &Arc<SimulatedDisk>, entropy: u64) -> SteppedJournal {
    try_open(disk, entropy).unwrap_or_else(|error| unreachable!("{error}"))
}

fn try_open(disk: &Arc<SimulatedDisk>, entropy: u64) -> Result<SteppedJournal, OpenError> {
    let options = Options {
        entropy,
        shard_count: 1,
        segment_size: 16 << 10,
        reserve_size: 0,
        commit: Commit::ByCaller,
        ..Options::default()
    };
    Journal::open_stepped(disk.clone(), &options)
}
