//! Shards as replicated logs: decided blocks, reading by index, terms, cuts and purging.

use bytes::Bytes;

use super::*;
use crate::block::BlockKind;
use crate::filing::Step;
use crate::record::{self, RecordKind, RecordView};
use crate::segment::ShardEnd;

/// Opens a journal whose blocks are committed by the caller; nothing is committed yet.
pub(super) fn open_replica(disk: &Arc<SimulatedDisk>, entropy: u64) -> SteppedJournal {
    let options = Options {
        commit: Commit::ByCaller,
        ..options(entropy)
    };
    Journal::open_stepped(disk.clone(), &options).unwrap()
}

/// Returns a block with one data record.
fn block(term: u64, index: u64, stream: StreamId, offset: u64, payload: &[u8]) -> DecidedBlock {
    let mut body = Vec::new();
    let record = RecordView {
        stream,
        offset,
        kind: RecordKind::Data,
        tag: 3,
        bytes: payload,
    };
    record::encode(&record, &mut body);
    DecidedBlock {
        kind: BlockKind::Records,
        term,
        index: Index(index),
        time_ms: 1000,
        body: body.into(),
    }
}

impl SteppedJournal {
    fn decide(&self, block: &DecidedBlock) {
        self.journal.append_decided(SHARD, block).unwrap();
    }

    fn blocks(&self) -> Vec<DecidedBlock> {
        let all = Index(1)..Index(u64::MAX);
        self.journal.read_blocks(SHARD, all, usize::MAX).unwrap()
    }

    fn commit_all(&self) {
        let end = self.journal.shard_end(SHARD).index;
        self.journal.commit(SHARD, end);
    }
}

fn end(index: u64, term: u64) -> ShardEnd {
    ShardEnd {
        index: Index(index),
        term,
    }
}

#[test]
fn a_follower_gets_the_leaders_blocks_by_index() {
    let disks = [disk(), disk()];
    let mut leader = open_replica(&disks[0], 1);
    let mut follower = open_replica(&disks[1], 2);
    leader.journal.begin_proposed_reign(SHARD, 3);
    assert_eq!(leader.journal.take_closed(SHARD), None);
    let mut tickets = Vec::new();
    for payload in [&b"one"[..], b"two", b"three"] {
        tickets.push(leader.append(STREAM, payload).ticket);
        let proposed = leader.journal.take_closed(SHARD).unwrap();
        assert_eq!(leader.journal.take_closed(SHARD), None);
        leader.decide(&proposed);
        assert_eq!(leader.blocks().last(), Some(&proposed), "read at once");
    }
    for block in leader.blocks() {
        follower.decide(&block);
    }
    assert_eq!(follower.blocks(), leader.blocks());
    assert_eq!(follower.journal.last(SHARD, Stage::Written), Index(0));
    let (bell, waker) = Bell::new();
    let notify = |it: &SteppedJournal| it.journal.notify_written(SHARD, Index(3), &waker);
    assert_eq!(notify(&follower), Status::Pending);
    leader.settle();
    follower.settle();
    assert_eq!(notify(&follower), Status::Durable);
    assert_eq!(bell.rings(), 1);
    assert_eq!(follower.blocks(), leader.blocks());
    leader.journal.commit(SHARD, Index(2));
    let status = |ticket: &Ticket| leader.journal.status(*ticket);
    let expected = [Status::Durable, Status::Durable, Status::Pending];
    assert_eq!(tickets.iter().map(status).collect::<Vec<_>>(), expected);
    follower.journal.commit(SHARD, Index(2));
    assert_eq!(follower.read(STREAM), [b"one", b"two"]);
    assert_eq!(leader.read(STREAM), follower.read(STREAM));
    drop(follower);
    let follower = open_replica(&disks[1], 3);
    assert_eq!(follower.blocks(), leader.blocks());
    assert_eq!(follower.journal.terms(SHARD), [end(0, 0), end(1, 3)]);
}

#[test]
fn refused_block_changes_nothing() {
    let mut stepped = open_replica(&disk(), 1);
    stepped.decide(&block(2, 1, STREAM, 0, b"one"));
    let gap = DecidedError::Offset {
        stream: STREAM,
        offset: 2,
        next: 1,
    };
    let members = DecidedBlock {
        kind: BlockKind::Members,
        ..block(2, 2, STREAM, 1, b"of another stream")
    };
    let blank = DecidedBlock {
        body: Bytes::from_static(b"x"),
        ..DecidedBlock::blank(2, Index(2), 1000)
    };
    let short = DecidedBlock {
        body: Bytes::from_static(b"short"),
        ..block(2, 2, STREAM, 1, b"")
    };
    let not_next = |index| DecidedError::NotNext {
        index: Index(index),
        next: Index(2),
    };
    let body = |kind| DecidedError::Body { kind };
    let kind = BlockKind::Vote;
    let vote = DecidedBlock {
        kind,
        ..block(2, 2, STREAM, 1, b"two")
    };
    let old = DecidedError::Term { term: 1, last: 2 };
    let short_error = DecidedError::Record(record::RecordError::Short { at: 0 });
    for (refused, expected) in [
        (block(2, 1, STREAM, 1, b"two"), not_next(1)),
        (block(2, 3, STREAM, 1, b"two"), not_next(3)),
        (block(1, 2, STREAM, 1, b"two"), old),
        (block(2, 2, STREAM, 2, b"two"), gap),
        (
            block(2, 2, STREAM, 0, b"two"),
            DecidedError::Offset {
                stream: STREAM,
                offset: 0,
                next: 1,
            },
        ),
        (members, body(BlockKind::Members)),
        (blank, body(BlockKind::Blank)),
        (vote, DecidedError::Kind { kind }),
        (short, short_error),
    ] {
        assert_eq!(
            stepped.journal.append_decided(SHARD, &refused),
            Err(expected)
        );
    }
    let large = block(2, 2, STREAM, 1, &[0; 16 << 10]);
    let refused = stepped.journal.append_decided(SHARD, &large);
    assert!(matches!(refused, Err(DecidedError::TooLarge { .. })));
    stepped.decide(&block(2, 2, STREAM, 1, b"two"));
    stepped.settle();
    stepped.commit_all();
    assert_eq!(stepped.read(STREAM), [b"one", b"two"]);
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
}

#[test]
fn proposed_blocks_are_taken_in_order_and_once() {
    let mut stepped = open_replica(&disk(), 1);
    stepped.journal.begin_proposed_reign(SHARD, 1);
    stepped.decide(&DecidedBlock::blank(1, Index(1), 1000));
    let one = stepped.append(STREAM, b"one");
    let proposed_one = stepped.journal.take_closed(SHARD).unwrap();
    stepped.append(STREAM, b"two");
    let refused = |block: &DecidedBlock| stepped.journal.append_decided(SHARD, block);
    let not_proposed = |index| DecidedError::NotProposed {
        index: Index(index),
    };
    let other = block(1, 2, STREAM, 0, b"one");
    assert_eq!(refused(&other), Err(not_proposed(2)), "another body");
    let blank = DecidedBlock::blank(1, Index(2), 1000);
    assert_eq!(refused(&blank), Err(not_proposed(2)), "a block is proposed");
    let proposed_two = stepped.journal.take_closed(SHARD).unwrap();
    let not_next = DecidedError::NotNext {
        index: Index(3),
        next: Index(2),
    };
    assert_eq!(refused(&proposed_two), Err(not_next));
    stepped.decide(&proposed_one);
    stepped.decide(&proposed_two);
    assert!(
        stepped
            .journal
            .append_decided(SHARD, &proposed_two)
            .is_err()
    );
    stepped.settle();
    stepped.commit_all();
    assert_eq!(stepped.journal.status(one.ticket), Status::Durable);
    assert_eq!(stepped.read(STREAM), [b"one", b"two"]);
}

#[test]
fn block_of_another_leader_ends_the_reign_and_drops_untaken_blocks() {
    let mut stepped = open_replica(&disk(), 1);
    stepped.journal.begin_proposed_reign(SHARD, 1);
    let taken = stepped.append(STREAM, b"taken");
    let proposed = stepped.journal.take_closed(SHARD).unwrap();
    stepped.decide(&proposed);
    let offered = stepped.append(STREAM, b"offered");
    let offered_block = stepped.journal.take_closed(SHARD).unwrap();
    let building = stepped.append(STREAM, b"building");
    stepped.decide(&block(2, 2, STREAM, 1, b"other"));
    for moved in [offered, building] {
        assert_eq!(stepped.journal.status(moved.ticket), Status::Moved);
    }
    assert_eq!(stepped.journal.status(taken.ticket), Status::Pending);
    assert!(
        stepped
            .journal
            .append_decided(SHARD, &offered_block)
            .is_err()
    );
    assert_eq!(stepped.journal.take_closed(SHARD), None);
    let refused = stepped.journal.lock(SHARD, 1).append(STREAM, None, 0, b"");
    assert_eq!(refused, Err(AppendError::Moved));
    stepped.settle();
    stepped.commit_all();
    assert_eq!(stepped.journal.status(taken.ticket), Status::Durable);
    assert_eq!(stepped.read(STREAM), [b"taken", b"other"]);
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
}

#[test]
fn cut_voids_blocks_that_wait_for_the_disk() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    stepped.decide(&block(1, 1, STREAM, 0, b"one"));
    stepped.settle();
    for index in 2..5 {
        stepped.decide(&block(1, index, STREAM, index - 1, b"void"));
    }
    stepped.journal.cut(SHARD, Index(3)).unwrap();
    stepped.decide(&block(2, 3, STREAM, 2, b"void too"));
    stepped.journal.cut(SHARD, Index(2)).unwrap();
    stepped.decide(&block(3, 2, STREAM, 1, b"two"));
    stepped.decide(&block(3, 3, STREAM, 2, b"three"));
    assert_eq!(stepped.journal.last(SHARD, Stage::Written), Index(1));
    let before = stepped.blocks();
    stepped.settle();
    assert_eq!(stepped.blocks(), before);
    assert_eq!(stepped.journal.last(SHARD, Stage::Written), Index(3));
    assert_eq!(
        stepped.journal.terms(SHARD),
        [end(0, 0), end(1, 1), end(2, 3)]
    );
    stepped.journal.commit(SHARD, Index(2));
    let committed = Index(2);
    let cut = stepped.journal.cut(SHARD, Index(2));
    assert_eq!(cut, Err(CutError::Committed { committed }));
    drop(stepped);
    let stepped = open_replica(&disk, 2);
    assert_eq!(stepped.blocks(), before);
    stepped.commit_all();
    assert_eq!(stepped.read(STREAM), [&b"one"[..], b"two", b"three"]);
}

#[test]
fn terms_survive_a_reopen_and_end_at_a_cut() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    for (index, term) in [(1, 1), (2, 1), (3, 4), (4, 6), (5, 6)] {
        stepped.decide(&block(term, index, STREAM, index - 1, b"x"));
    }
    stepped.settle();
    let expected = [end(0, 0), end(1, 1), end(3, 4), end(4, 6)];
    assert_eq!(stepped.journal.terms(SHARD), expected);
    drop(stepped);
    let mut stepped = open_replica(&disk, 2);
    assert_eq!(stepped.journal.terms(SHARD), expected);
    assert_eq!(stepped.journal.shard_end(SHARD), end(5, 6));
    stepped.journal.cut(SHARD, Index(4)).unwrap();
    stepped.settle();
    assert_eq!(stepped.journal.terms(SHARD), expected[..3]);
    assert_eq!(stepped.journal.shard_end(SHARD), end(3, 4));
    drop(stepped);
    let stepped = open_replica(&disk, 3);
    assert_eq!(stepped.journal.terms(SHARD), expected[..3]);
    assert_eq!(stepped.journal.term_of(SHARD, Index(2)), Some(1));
    assert_eq!(stepped.journal.term_of(SHARD, Index(4)), None);
    assert_eq!(stepped.journal.last_taken(SHARD), end(3, 4));
}

#[test]
fn reading_by_index_returns_all_blocks_or_an_error() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    for index in 1..6 {
        stepped.decide(&block(1, index, STREAM, index - 1, &[index as u8; 100]));
    }
    stepped.settle();
    stepped.line.forget_tail();
    let count = |from, to, bytes| {
        let indexes = Index(from)..Index(to);
        let read = stepped.journal.read_blocks(SHARD, indexes, bytes);
        read.map(|blocks| blocks.len())
    };
    assert_eq!(count(1, 6, usize::MAX).unwrap(), 5);
    assert_eq!(count(2, 4, usize::MAX).unwrap(), 2);
    assert_eq!(count(2, 6, 0).unwrap(), 1, "one block at least");
    assert_eq!(count(1, 6, 400).unwrap(), 2);
    assert_eq!(count(6, 9, 400).unwrap(), 0);
    let location = stepped
        .journal
        .shard(SHARD)
        .state
        .lock()
        .tail
        .location(Index(3));
    let place = location.unwrap().position.0 + 80;
    disk.flip(&segment::path(1), place * 8).unwrap();
    assert_eq!(count(1, 3, usize::MAX).unwrap(), 2);
    let damaged = count(1, 6, usize::MAX).unwrap_err();
    assert!(matches!(
        damaged,
        ReadBlocksError::Damaged {
            index: Index(3),
            ..
        }
    ));
}

#[test]
fn segments_are_held_until_purged_or_too_large() {
    for hold_size in [0, 64 << 10] {
        let options = Options {
            commit: Commit::ByCaller,
            hold_size,
            ..options(1)
        };
        let mut stepped = Journal::open_stepped(disk(), &options).unwrap();
        let mut index = 0;
        let mut fill = |stepped: &mut SteppedJournal, count| {
            for _ in 0..count {
                index += 1;
                stepped.decide(&block(1, index, STREAM, index - 1, &[7; 4000]));
                stepped.settle();
                stepped.commit_all();
            }
            while stepped.background.step(1000) == Step::Worked {}
        };
        fill(&mut stepped, 8);
        let is_held = hold_size > 0;
        assert_eq!(stepped.journal.last_filed(SHARD).index == Index(0), is_held);
        if !is_held {
            let filed = stepped.journal.last_filed(SHARD);
            let read = stepped.journal.read_blocks(SHARD, Index(1)..Index(3), 1);
            assert!(matches!(read, Err(ReadBlocksError::Purged { last }) if last == filed));
            continue;
        }
        assert_eq!(stepped.blocks().len(), 8);
        stepped.journal.purge(SHARD, Index(4));
        while stepped.background.step(2000) == Step::Worked {}
        let filed = stepped.journal.last_filed(SHARD).index;
        assert!(filed > Index(0) && filed <= Index(4), "{filed:?}");
        // The other shard of the journal has no blocks, and holds nothing.
        fill(&mut stepped, 40);
        let stats = stepped.journal.stats();
        assert!((4..7).contains(&stats.segments), "{stats:?}");
        assert!(stepped.journal.last_filed(SHARD).index > filed);
        // A backup or an erase needs everything filed.
        stepped.seal_and_file();
        assert_eq!(stepped.journal.stats().segments, 1);
        assert_eq!(stepped.read(STREAM).len(), 48);
    }
}

impl SteppedJournal {
    /// Ends the active segment and files everything.
    pub(super) fn seal_and_file(&mut self) {
        let position = self.journal.seal();
        for _ in 0..1000 {
            self.settle();
            while self.background.step(3000) == Step::Worked {}
            if self.journal.is_filed(position) {
                return;
            }
        }
        assert!(
            self.journal.is_filed(position),
            "{:?}",
            self.journal.stats()
        );
    }
}

#[test]
fn blank_and_members_blocks_are_filed_with_their_indexes() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    stepped.decide(&DecidedBlock::blank(1, Index(1), 1000));
    stepped.decide(&DecidedBlock::members(1, Index(2), 1000, 0, b"a, b"));
    stepped.decide(&block(1, 3, STREAM, 0, b"record"));
    stepped.decide(&DecidedBlock::members(2, Index(4), 1000, 1, b"a, b, c"));
    stepped.decide(&DecidedBlock::blank(3, Index(5), 1000));
    stepped.settle();
    let check = |stepped: &SteppedJournal| {
        assert_eq!(stepped.journal.shard_end(SHARD), end(5, 3));
        assert_eq!(stepped.read(MEMBERS_STREAM), [&b"a, b"[..], b"a, b, c"]);
        assert_eq!(stepped.read(STREAM), [b"record"]);
    };
    let members = stepped.blocks()[3].as_members();
    assert_eq!(members, Some(Bytes::from_static(b"a, b, c")));
    assert_eq!(stepped.blocks()[2].as_members(), None);
    stepped.commit_all();
    check(&stepped);
    drop(stepped);
    let mut stepped = open_replica(&disk, 2);
    assert_eq!(stepped.blocks().len(), 5);
    stepped.commit_all();
    check(&stepped);
    stepped.seal_and_file();
    check(&stepped);
    assert_eq!(stepped.journal.last_filed(SHARD), end(5, 3));
    drop(stepped);
    check(&open_replica(&disk, 3));
}

#[test]
fn the_line_leaves_proposed_blocks_alone_and_the_proposer_is_woken() {
    let mut stepped = open_replica(&disk(), 1);
    stepped.journal.begin_proposed_reign(SHARD, 1);
    let (bell, waker) = Bell::new();
    assert_eq!(stepped.journal.proposed_shards(&waker), 0);
    stepped.append(STREAM, b"one");
    stepped.append(STREAM, b"two");
    assert_eq!(bell.rings(), 1);
    assert_eq!(stepped.line.step(), LineStep::Idle);
    assert_eq!(stepped.journal.proposed_shards(&waker), 1 << SHARD.0);
    let round = stepped.journal.round();
    let mut guard = round.lock(SHARD, 1000);
    guard.append(STREAM, None, 0, b"three").unwrap();
    drop(guard);
    assert_eq!(bell.rings(), 1);
    drop(round);
    assert_eq!(bell.rings(), 2);
    let proposed = stepped.journal.take_closed(SHARD).unwrap();
    assert_eq!(record::records(&proposed.body).count(), 3);
    stepped.journal.end_reign(SHARD);
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
    assert_eq!(stepped.journal.lock(SHARD, 1).next(STREAM), 0);
}

#[test]
fn blocks_of_a_reign_that_was_led_alone_are_read_when_they_are_on_disk() {
    let stepped = open_replica(&disk(), 1);
    stepped.journal.begin_reign(SHARD, 1);
    stepped.append(STREAM, b"one");
    let shard = stepped.journal.shard(SHARD);
    // The line has taken the block, and not written it.
    let mut queue = Default::default();
    shard.state.lock().take_built(&mut queue);
    stepped.journal.end_reign(SHARD);
    stepped.decide(&block(2, 2, STREAM, 1, b"two"));
    assert_eq!(stepped.blocks(), []);
    assert_eq!(queue.len(), 1);
}

#[test]
fn consensus_adds_a_block_while_a_reign_is_paused() {
    let mut stepped = open_replica(&disk(), 1);
    stepped.journal.begin_proposed_reign(SHARD, 1);
    let before = stepped.append(STREAM, b"before").ticket;
    stepped.journal.pause(SHARD);
    let refused = stepped
        .journal
        .lock(SHARD, 0)
        .append(STREAM, None, 0, b"paused");
    assert_eq!(refused.unwrap_err(), AppendError::Full);
    let (bell, waker) = Bell::new();
    assert!(stepped.journal.notify_room(SHARD, &waker));
    assert!(!stepped.journal.has_no_untaken(SHARD));
    let members = |index| DecidedBlock::members(1, Index(index), 1000, 0, b"a, b");
    let refused = stepped.journal.append_decided(SHARD, &members(1));
    let index = Index(1);
    assert_eq!(refused.unwrap_err(), DecidedError::NotProposed { index });
    let proposed = stepped.journal.take_closed(SHARD).unwrap();
    stepped.decide(&proposed);
    assert!(stepped.journal.has_no_untaken(SHARD));
    stepped.decide(&members(2));
    assert_eq!(bell.rings(), 0);
    stepped.journal.resume(SHARD);
    assert_eq!(bell.rings(), 1);
    let after = stepped.append(STREAM, b"after").ticket;
    assert_eq!((before.index, after.index), (Index(1), Index(3)));
    stepped.decide(&stepped.journal.take_closed(SHARD).unwrap());
    stepped.settle();
    stepped.commit_all();
    assert_eq!(stepped.read(STREAM), [&b"before"[..], b"after"]);
}

#[test]
fn end_of_a_reign_ends_its_pause() {
    let stepped = open_replica(&disk(), 1);
    stepped.journal.begin_proposed_reign(SHARD, 1);
    stepped.journal.pause(SHARD);
    let (bell, waker) = Bell::new();
    assert!(stepped.journal.notify_room(SHARD, &waker));
    stepped.journal.end_reign(SHARD);
    assert_eq!(bell.rings(), 1);
    stepped.journal.begin_proposed_reign(SHARD, 2);
    assert!(
        stepped
            .journal
            .lock(SHARD, 0)
            .append(STREAM, None, 0, b"on")
            .is_ok()
    );
}

#[test]
fn view_appends_in_its_reigns_only() {
    let mut stepped = open_replica(&disk(), 1);
    let shards = stepped.journal.shard_count();
    let begin = |journal: &Journal, term| -> Vec<(Reign, u64)> {
        let shards = (0..shards).map(ShardId);
        let reigns = shards.map(|shard| (journal.begin_proposed_reign(shard, term), term));
        reigns.collect()
    };
    let view = stepped.journal.in_reigns(&begin(&stepped.journal, 3));
    assert_eq!(view.leader_epoch(SHARD), 3);
    view.lock(SHARD, 0).append(STREAM, None, 0, b"one").unwrap();
    let round = view.round();
    round
        .lock(SHARD, 0)
        .append(STREAM, None, 0, b"two")
        .unwrap();
    assert!(round.is_of(&view));
    assert!(!round.is_of(&stepped.journal));
    drop(round);
    stepped.decide(&stepped.journal.take_closed(SHARD).unwrap());
    let later = stepped.journal.in_reigns(&begin(&stepped.journal, 4));
    assert_eq!(later.leader_epoch(SHARD), 4);
    assert!(!view.round().is_of(&later));
    assert!(stepped.journal.round().is_of(&stepped.journal));
    let other = open_replica(&disk(), 1);
    assert!(!other.journal.round().is_of(&stepped.journal));
    let refused = view.lock(SHARD, 0).append(STREAM, None, 0, b"stale");
    assert_eq!(refused.unwrap_err(), AppendError::Moved);
    let refused = view.round().lock(SHARD, 0).trim(STREAM, 1);
    assert_eq!(refused.unwrap_err(), AppendError::Moved);
    later
        .lock(SHARD, 0)
        .append(STREAM, None, 0, b"three")
        .unwrap();
    stepped.decide(&stepped.journal.take_closed(SHARD).unwrap());
    stepped.settle();
    stepped.commit_all();
    assert_eq!(stepped.read(STREAM), [&b"one"[..], b"two", b"three"]);
}
