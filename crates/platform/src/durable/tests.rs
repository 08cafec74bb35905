use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use journal::disk::SimulatedDisk;
use journal::{Commit, LineStep, Options, ShardId, Stage, SteppedJournal, StreamId};

use super::*;
use crate::pending::Pending;

const ONE: ShardId = ShardId(0);
const OTHER: ShardId = ShardId(1);

/// Opens a journal that leads two shards, and whose blocks the test commits.
fn open() -> (Arc<Journal>, journal::Line) {
    let options = Options {
        shard_count: 2,
        segment_size: 1 << 20,
        reserve_size: 0,
        commit: Commit::ByCaller,
        ..Options::default()
    };
    let disk = Arc::new(SimulatedDisk::new(1));
    let opened: SteppedJournal = Journal::open_stepped(disk, &options).unwrap();
    opened.journal.begin_reign(ONE, 1);
    opened.journal.begin_reign(OTHER, 1);
    (Arc::new(opened.journal), opened.line)
}

fn append(journal: &Journal, shard: ShardId) -> Ticket {
    let mut guard = journal.lock(shard, 1);
    guard.append(StreamId(7), None, 0, b"x").unwrap().ticket
}

fn outcome(durable: &Durable) -> Poll<Result<(), NotDurable>> {
    let polled = durable.poll_durable(Waker::noop());
    if let Poll::Ready(result) = polled {
        assert_eq!(durable.wait(), result);
        let mut watched = None;
        assert_eq!(durable.poll_watched(&mut watched, Waker::noop()), polled);
    }
    polled
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn outcome_is_moved_only_if_the_operation_itself_is() {
    let (journal, mut line) = open();
    let written = append(&journal, OTHER);
    assert_eq!(line.step(), LineStep::Worked);
    let dropped = append(&journal, ONE);
    let dropped_too = append(&journal, OTHER);
    journal.end_reign(ONE);
    journal.end_reign(OTHER);

    let durable = |tickets| outcome(&Durable::new(&journal, tickets));
    let moved = Poll::Ready(Err(NotDurable::Moved));
    let cut = Poll::Ready(Err(NotDurable::Cut));
    assert_eq!(durable([None, Some(dropped)]), moved);
    assert_eq!(durable([Some(dropped_too), Some(dropped)]), moved);
    // The operation itself is on disk, or was an earlier one.
    assert_eq!(durable([Some(dropped), Some(written)]), cut);
    assert_eq!(durable([Some(dropped), None]), cut);
    for tickets in [[None, Some(dropped)], [Some(dropped_too), Some(dropped)]] {
        assert_eq!(outcome(&Durable::of_earlier(&journal, tickets)), cut);
    }
    assert_eq!(durable([Some(written), Some(dropped)]), Poll::Pending);
    journal.commit(OTHER, written.index);
    assert_eq!(durable([Some(written), Some(dropped)]), moved);
    assert_eq!(durable([None, Some(written)]), Poll::Ready(Ok(())));
}

#[test]
fn written_operation_is_durable_here_before_it_is_committed() {
    let (journal, mut line) = open();
    let ticket = append(&journal, ONE);
    let committed = Durable::new(&journal, [None, Some(ticket)]);
    let written = committed.clone().written_here();
    let polled = |durable: &Durable| durable.poll_durable(Waker::noop());
    assert_eq!(
        (polled(&written), polled(&committed)),
        (Poll::Pending, Poll::Pending)
    );
    assert_eq!(line.step(), LineStep::Worked);
    assert_eq!(
        (polled(&written), polled(&committed)),
        (Poll::Ready(Ok(())), Poll::Pending)
    );
    journal.commit(ONE, ticket.index);
    assert_eq!(polled(&committed), Poll::Ready(Ok(())));
}

#[test]
fn cut_operation_is_never_moved() {
    let (journal, mut line) = open();
    let void = append(&journal, ONE);
    assert_eq!(line.step(), LineStep::Worked);
    let durable = Durable::new(&journal, [None, Some(void)]);
    assert_eq!(outcome(&durable), Poll::Pending);
    journal.end_reign(ONE);
    assert_eq!(
        outcome(&durable),
        Poll::Pending,
        "it may still be committed"
    );
    journal.cut(ONE, void.index).unwrap();
    assert_eq!(outcome(&durable), Poll::Ready(Err(NotDurable::Cut)));

    // Another block takes its index.
    journal.begin_reign(ONE, 2);
    let instead = append(&journal, ONE);
    assert_eq!(instead.index, void.index);
    assert_eq!(line.step(), LineStep::Worked);
    journal.commit(ONE, instead.index);
    assert_eq!(outcome(&durable), Poll::Ready(Err(NotDurable::Cut)));
}

#[test]
fn waiter_is_woken_at_commit_after_the_end_of_its_reign() {
    let (journal, mut line) = open();
    let ticket = append(&journal, ONE);
    assert_eq!(line.step(), LineStep::Worked);
    let mut pending: Pending<()> = Pending::new(&journal, Some(ticket), Ok(()));
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert_eq!(pending.poll_answer(&waker), Poll::Pending);
    journal.end_reign(ONE);
    assert_eq!(pending.poll_answer(&waker), Poll::Pending);
    journal.begin_reign(ONE, 2);
    assert_eq!(pending.poll_answer(&waker), Poll::Pending);
    assert_eq!(journal.last(ONE, Stage::Committed), Index(0));
    journal.commit(ONE, ticket.index);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(pending.poll_answer(&waker), Poll::Ready(Ok(())));
}
