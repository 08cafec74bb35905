//! Votes: durable like blocks, in the headers of segments, lost with damaged ones.

use super::log::open_replica;
use super::*;

fn vote(term: u64, bytes: &[u8]) -> Vote {
    Vote::new(term, bytes).unwrap()
}

impl SteppedJournal {
    fn save_vote(&mut self, vote: Vote) {
        let ticket = self.journal.save_vote(SHARD, vote).unwrap();
        self.settle();
        assert_eq!(self.journal.vote_status(ticket), Status::Durable);
    }
}

#[test]
fn vote_is_durable_with_its_sync() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    assert_eq!(stepped.journal.last_vote(SHARD), LastVote::Never);
    let first = vote(3, b"node 1");
    let ticket = stepped.journal.save_vote(SHARD, first).unwrap();
    let (bell, waker) = Bell::new();
    assert_eq!(stepped.journal.vote_status(ticket), Status::Pending);
    assert_eq!(stepped.journal.notify_vote(ticket, &waker), Status::Pending);
    assert_eq!(stepped.journal.last_vote(SHARD), LastVote::Never);
    assert_eq!(stepped.line.step(), LineStep::Worked);
    assert_eq!(
        (stepped.journal.vote_status(ticket), bell.rings()),
        (Status::Durable, 1)
    );
    assert_eq!(stepped.journal.last_vote(SHARD), LastVote::Known(first));
    let old = VoteError::Term { term: 2, last: 3 };
    let refused = stepped.journal.save_vote(SHARD, vote(2, b"node 2"));
    assert_eq!(refused, Err(old));
    stepped.save_vote(vote(3, b"node 1, committ"));
    assert_eq!(stepped.journal.shard_end(SHARD).index, Index(0), "no index");
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
    drop(stepped);
    disk.crash_with(|_| Fate::Lost);
    let stepped = open_replica(&disk, 2);
    let last = LastVote::Known(vote(3, b"node 1, committ"));
    assert_eq!(stepped.journal.last_vote(SHARD), last);
    assert_eq!(stepped.journal.last_vote(ShardId(0)), LastVote::Never);
}

#[test]
fn vote_outlives_the_segment_that_it_was_written_to() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    stepped.save_vote(vote(5, b"x"));
    for _ in 0..3 {
        stepped.seal_and_file();
    }
    drop(stepped);
    for entropy in 2..5 {
        let stepped = open_replica(&disk, entropy);
        let last = LastVote::Known(vote(5, b"x"));
        assert_eq!(stepped.journal.last_vote(SHARD), last);
    }
}

#[test]
fn vote_is_lost_with_a_part_of_the_line_until_a_later_one_is_found() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    for (term, byte) in [(5, b'x'), (6, b'y'), (7, b'z')] {
        stepped.save_vote(vote(term, &[byte; 8]));
    }
    drop(stepped);
    let bytes = disk.images(&segment::path(1)).unwrap().0;
    let at = |byte| bytes.windows(8).position(|it| it == [byte; 8]).unwrap() as u64;
    let accepting = Options {
        commit: Commit::ByCaller,
        accept_loss: AcceptLoss::Yes,
        ..options(2)
    };
    let open_without = |byte| {
        let disk = Arc::new(disk.fork());
        disk.flip(&segment::path(1), at(byte) * 8).unwrap();
        drop(Journal::open_stepped(disk.clone(), &accepting).unwrap());
        open_replica(&disk, 3)
    };
    let known = LastVote::Known(vote(7, b"zzzzzzzz"));
    assert_eq!(open_without(b'y').journal.last_vote(SHARD), known);
    let stepped = open_without(b'z');
    assert_eq!(stepped.journal.last_vote(SHARD), LastVote::Lost);
    let refused = stepped.journal.save_vote(SHARD, vote(9, b"w"));
    assert_eq!(refused, Err(VoteError::Lost));
}

#[test]
fn vote_fails_with_the_line() {
    let disk = disk();
    let mut stepped = open_replica(&disk, 1);
    let ticket = stepped.journal.save_vote(SHARD, vote(1, b"x")).unwrap();
    let (bell, waker) = Bell::new();
    stepped.journal.notify_vote(ticket, &waker);
    disk.fail_once(Fault::Broken, |call| call.kind == Kind::SyncData);
    assert_eq!(stepped.line.step(), LineStep::Failed);
    assert_eq!(
        (stepped.journal.vote_status(ticket), bell.rings()),
        (Status::Failed, 1)
    );
    let refused = stepped.journal.save_vote(SHARD, vote(2, b"y"));
    assert_eq!(refused, Err(VoteError::Failed));
}
