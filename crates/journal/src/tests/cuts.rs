//! Cuts combined with filing, losses and crashes.

use super::*;
use crate::block::{BlockHeader, BlockKind};
use crate::filing::{Line as _, Step};
use crate::segment::{Scan, Segment};

/// Opens the journal with [`Commit::ByCaller`] and commits all blocks.
fn open_by_caller(
    disk: &Arc<SimulatedDisk>,
    entropy: u64,
    accept_loss: AcceptLoss,
) -> SteppedJournal {
    let options = Options {
        commit: Commit::ByCaller,
        accept_loss,
        ..options(entropy)
    };
    let stepped = Journal::open_stepped(disk.clone(), &options).unwrap();
    let end = stepped.journal.shard_end(SHARD).index;
    stepped.journal.commit(SHARD, end);
    stepped.begin_next_reign();
    stepped
}

fn reopen(disk: &Arc<SimulatedDisk>, entropy: u64) -> SteppedJournal {
    open_by_caller(disk, entropy, AcceptLoss::No)
}

impl SteppedJournal {
    /// Begins a reign in the next term.
    pub(super) fn begin_next_reign(&self) {
        let term = self.journal.shard_end(SHARD).term + 1;
        self.journal.begin_reign(SHARD, term);
    }

    /// Cuts the shard from a block on, and begins the next reign.
    fn cut(&self, index: Index) {
        self.journal.cut(SHARD, index).unwrap();
        self.begin_next_reign();
    }

    /// Ends the active segment.
    fn seal(&mut self) {
        self.prepare_spare();
        self.journal.shared().seal();
        self.settle();
    }

    /// Asserts that an append took the place of a void one, whose ticket it does not acknowledge.
    fn assert_replaced(&self, void: Appended, instead: Appended) {
        assert_eq!(instead.offset, void.offset);
        assert_eq!(instead.ticket.index, void.ticket.index);
        for stage in [Stage::Written, Stage::Committed] {
            assert_eq!(self.journal.status_at(stage, void.ticket), Status::Cut);
        }
        let written = self.journal.status_at(Stage::Written, instead.ticket);
        assert_eq!(written, Status::Durable);
    }

    /// Files until this many segments are left.
    fn file_until(&mut self, segments: usize) {
        while self.journal.stats().segments > segments {
            assert_eq!(self.background.step(1000), Step::Worked);
        }
    }
}

#[test]
fn segment_is_filed_only_after_the_cut_of_its_blocks_is_written() {
    let disk = disk();
    let mut stepped = reopen(&disk, 1);
    let kept = stepped.append_durably(STREAM, b"kept");
    let void = stepped.append_durably(STREAM, b"void");
    stepped.journal.commit(SHARD, kept.ticket.index);
    stepped.seal();
    stepped.cut(void.ticket.index);
    // The filing runs first, and the line's thread later.
    while stepped.background.step(1000) == Step::Worked {}
    assert_eq!(stepped.journal.stats().segments, 2);
    let instead = stepped.append_durably(STREAM, b"instead");
    stepped.assert_replaced(void, instead);
    stepped.journal.commit(SHARD, instead.ticket.index);
    stepped.seal();
    stepped.file_until(1);
    let expected = [b"kept".to_vec(), b"instead".to_vec()];
    assert_eq!(stepped.read(STREAM), expected);
    drop(stepped);
    assert_eq!(reopen(&disk, 2).read(STREAM), expected);
}

/// Writes two valid blocks, followed by void ones in the first and second segment. The cut is in
/// the third, with the blocks that replace them. Another stream has void records only.
fn cut_from_the_third(disk: &Arc<SimulatedDisk>) -> SteppedJournal {
    let mut stepped = reopen(disk, 1);
    stepped.append_durably(STREAM, b"one");
    let kept = stepped.append_durably(STREAM, b"two");
    stepped.journal.commit(SHARD, kept.ticket.index);
    let void = stepped.append_durably(STREAM, b"void");
    stepped.append_durably(StreamId(8), b"void too");
    stepped.seal();
    stepped.append_durably(STREAM, b"void behind void");
    stepped.append_durably(StreamId(8), b"void too behind void");
    stepped.seal();
    stepped.cut(void.ticket.index);
    let instead = stepped.append_durably(STREAM, b"instead");
    stepped.assert_replaced(void, instead);
    stepped.journal.commit(SHARD, instead.ticket.index);
    assert_eq!(stepped.journal.stats().segments, 3);
    stepped
}

/// Reads all records of the stream that were never void.
fn expected() -> Vec<Vec<u8>> {
    [&b"one"[..], b"two", b"instead"].map(<[u8]>::to_vec).into()
}

#[test]
fn void_blocks_are_filed_away_segment_by_segment_before_their_cut() {
    let disk = disk();
    let mut stepped = cut_from_the_third(&disk);
    stepped.seal();
    for segments in (1..=4).rev() {
        stepped.file_until(segments);
        assert_eq!(stepped.read(STREAM), expected());
        let stopped = Arc::new(disk.fork());
        let mut again = reopen(&stopped, 2);
        assert_eq!(again.read(STREAM), expected(), "{segments} segments");
        assert_eq!(again.append_durably(STREAM, b"next").offset, 3);
        assert_eq!(again.append_durably(StreamId(8), b"first").offset, 0);
    }
}

#[test]
fn lost_header_between_void_blocks_and_cut_is_accepted_once() {
    let disk = disk();
    let mut stepped = cut_from_the_third(&disk);
    stepped.file_until(2);
    drop(stepped);
    disk.flip(&segment::path(2), 100).unwrap();
    for (entropy, accept_loss) in [(2, AcceptLoss::Yes), (3, AcceptLoss::No)] {
        let stepped = open_by_caller(&disk, entropy, accept_loss);
        assert_eq!(stepped.read(STREAM), expected());
    }
    let mut stepped = reopen(&disk, 4);
    assert_eq!(stepped.append_durably(StreamId(8), b"first").offset, 0);
}

/// Flips a bit in each block of a segment for which the predicate holds; there must be at least
/// one.
fn damage(disk: &SimulatedDisk, sequence: u64, mut is_it: impl FnMut(&BlockHeader) -> bool) {
    let segment = Segment::open(disk, sequence, options(0).journal_id).unwrap();
    let mut scan = Scan::new(&segment, segment.header.limit());
    let mut places = Vec::new();
    while let Some(block) = scan.next_block().unwrap() {
        if is_it(&block.header) {
            places.push(block.header.position.0 - segment.header.base.0);
        }
    }
    assert!(!places.is_empty());
    for place in places {
        disk.flip(&segment::path(sequence), (place + 30) * 8)
            .unwrap();
    }
}

#[test]
fn a_lost_cut_is_recovered_from_later_blocks() {
    for filed in [0, 1, 2] {
        let disk = disk();
        let mut stepped = cut_from_the_third(&disk);
        stepped.append_durably(STREAM, b"last");
        stepped.file_until(3 - filed);
        drop(stepped);
        damage(&disk, 3, |header| header.kind == BlockKind::Cut);
        let mut expected = expected();
        expected.push(b"last".to_vec());
        for (entropy, accept_loss) in [(2, AcceptLoss::Yes), (3, AcceptLoss::No)] {
            let stepped = open_by_caller(&disk, entropy, accept_loss);
            assert_eq!(stepped.read(STREAM), expected, "{filed} filed");
        }
        let mut stepped = reopen(&disk, 4);
        assert_eq!(stepped.append_durably(StreamId(8), b"first").offset, 0);
        stepped.seal();
        stepped
            .journal
            .commit(SHARD, stepped.journal.shard_end(SHARD).index);
        stepped.file_until(1);
        assert_eq!(stepped.read(STREAM), expected, "{filed} filed");
    }
}

#[test]
fn lost_blocks_are_void_after_a_later_cut() {
    let disk = disk();
    let mut stepped = reopen(&disk, 1);
    let kept = stepped.append_durably(STREAM, b"kept");
    stepped.journal.commit(SHARD, kept.ticket.index);
    let lost = stepped.append_durably(STREAM, b"lost");
    let void = stepped.append_durably(STREAM, b"void");
    let index = void.ticket.index;
    stepped.append_durably(STREAM, b"void too");
    stepped.cut(index);
    assert_eq!(
        stepped.append_durably(STREAM, b"instead").offset,
        void.offset
    );
    drop(stepped);
    let mut count = 0;
    damage(&disk, 1, |header| {
        count += u64::from(header.kind == BlockKind::Records);
        header.kind == BlockKind::Records && (2..=4).contains(&count)
    });
    for (entropy, accept_loss) in [(2, AcceptLoss::Yes), (3, AcceptLoss::No)] {
        let stepped = open_by_caller(&disk, entropy, accept_loss);
        assert_eq!(stepped.journal.shard_end(SHARD).index, index);
        let read = stepped.journal.read(SHARD, STREAM, 0, ALL).unwrap();
        let offsets: Vec<u64> = read.records.iter().map(|record| record.offset).collect();
        assert_eq!(offsets, [kept.offset, lost.offset + 1]);
    }
}
