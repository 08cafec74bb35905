//! Outcomes of tickets, and wake-ups.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::*;
use crate::ShardId;

const COMMITTED: Stage = Stage::Committed;

fn publication() -> Publication {
    let publication = Publication::default();
    publication.begin_reign(Reign(1));
    publication
}

fn ticket(reign: u32, index: u64) -> Ticket {
    Ticket {
        shard: ShardId(0),
        reign: Reign(reign),
        index: Index(index),
    }
}

fn advance(publication: &Publication, written: u64, committed: u64) {
    let progress = publication.advance(Index(written), Index(committed));
    publication.wake(progress);
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn waker() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (count.clone(), Waker::from(count))
    }

    fn wakes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn waker_is_woken_once_when_its_block_is_committed() {
    let publication = publication();
    let (count, waker) = Count::waker();
    let two = ticket(1, 2);
    assert_eq!(publication.notify(two, COMMITTED, &waker), Status::Pending);
    assert_eq!(publication.notify(two, COMMITTED, &waker), Status::Pending);
    advance(&publication, 1, 1);
    assert_eq!(count.wakes(), 0);
    advance(&publication, 3, 3);
    assert_eq!(count.wakes(), 1);
    advance(&publication, 4, 4);
    assert_eq!(count.wakes(), 1);
    let four = ticket(1, 4);
    assert_eq!(publication.notify(four, COMMITTED, &waker), Status::Durable);
}

#[test]
fn written_and_committed_are_waited_for_separately() {
    let publication = publication();
    let (written, written_waker) = Count::waker();
    let (committed, committed_waker) = Count::waker();
    let one = ticket(1, 1);
    publication.notify(one, Stage::Written, &written_waker);
    publication.notify(one, COMMITTED, &committed_waker);
    advance(&publication, 1, 0);
    assert_eq!((written.wakes(), committed.wakes()), (1, 0));
    assert_eq!(publication.status(one, Stage::Written), Status::Durable);
    assert_eq!(publication.status(one, COMMITTED), Status::Pending);
    advance(&publication, 1, 1);
    assert_eq!((written.wakes(), committed.wakes()), (1, 1));
    assert_eq!(publication.status(one, COMMITTED), Status::Durable);
}

#[test]
fn a_failure_wakes_all_waiters_and_committed_blocks_stay_committed() {
    let publication = publication();
    advance(&publication, 1, 1);
    let (count, waker) = Count::waker();
    publication.notify(ticket(1, 5), COMMITTED, &waker);
    publication.fail();
    assert_eq!(count.wakes(), 1);
    assert_eq!(publication.status(ticket(1, 1), COMMITTED), Status::Durable);
    assert_eq!(publication.wait(ticket(1, 2)), Status::Failed);
}

#[test]
fn tickets_of_an_ended_reign_are_decided_by_what_was_taken_and_cut() {
    let publication = publication();
    advance(&publication, 4, 1);
    let (count, waker) = Count::waker();
    for index in 2..=6 {
        publication.notify(ticket(1, index), COMMITTED, &waker);
    }
    let status = |reign, index| publication.status(ticket(reign, index), COMMITTED);
    publication.end_reign(Index(5));
    publication.wake_decided();
    assert_eq!(count.wakes(), 1, "tasks stay registered while they wait");
    assert_eq!(status(1, 5), Status::Pending, "taken, and not decided");
    assert_eq!(status(1, 6), Status::Moved);

    publication.cut(Index(4));
    publication.wake_decided();
    assert_eq!(count.wakes(), 3);
    assert_eq!(status(1, 3), Status::Pending);
    assert_eq!([status(1, 4), status(1, 5)], [Status::Cut; 2]);
    assert_eq!(status(1, 6), Status::Moved);
    let four = publication.status(ticket(1, 4), Stage::Written);
    assert_eq!(four, Status::Cut, "it was written, and is void");

    // Other blocks take the indexes of the void ones.
    publication.begin_reign(Reign(2));
    advance(&publication, 6, 6);
    assert_eq!(count.wakes(), 5, "each ticket once");
    assert_eq!(status(1, 3), Status::Durable);
    assert_eq!([status(1, 4), status(1, 5)], [Status::Cut; 2]);
    assert_eq!(status(1, 6), Status::Moved);
    assert_eq!([status(2, 4), status(2, 6)], [Status::Durable; 2]);
}

#[test]
fn a_ticket_of_a_forgotten_reign_is_never_durable() {
    let publication = publication();
    advance(&publication, 9, 9);
    for reign in 2..=ENDED_REIGNS_MAX as u32 + 2 {
        publication.end_reign(Index(9));
        publication.begin_reign(Reign(reign));
    }
    assert_eq!(publication.status(ticket(1, 9), COMMITTED), Status::Cut);
    assert_eq!(publication.status(ticket(2, 9), COMMITTED), Status::Durable);
    let nothing = publication.status(ticket(1, 0), COMMITTED);
    assert_eq!(nothing, Status::Durable, "nothing had to be written");
    publication.end_reign(Index(9));
    let unled = publication.status(ticket(0, 9), COMMITTED);
    assert_eq!(unled, Status::Cut, "it was made without a reign");
}

#[test]
fn reigns_with_pending_tickets_are_not_forgotten() {
    let publication = publication();
    advance(&publication, 9, 8);
    let (count, waker) = Count::waker();
    let nine = ticket(1, 9);
    publication.notify(nine, COMMITTED, &waker);
    for reign in 2..=ENDED_REIGNS_MAX as u32 + 2 {
        publication.end_reign(Index(9));
        publication.begin_reign(Reign(reign));
    }
    assert_eq!(publication.status(nine, COMMITTED), Status::Pending);
    advance(&publication, 9, 9);
    assert_eq!(count.wakes(), 1);
    assert_eq!(publication.status(nine, COMMITTED), Status::Durable);
}

#[test]
fn late_wake_after_a_cut_leaves_waiters_registered() {
    let publication = publication();
    let late = publication.advance(Index(5), Index(3));
    publication.end_reign(Index(5));
    publication.cut(Index(4));
    publication.begin_reign(Reign(2));
    let (count, waker) = Count::waker();
    let four = ticket(2, 4);
    publication.notify(four, Stage::Written, &waker);
    publication.wake(late);
    assert_eq!(count.wakes(), 0);
    advance(&publication, 4, 3);
    assert_eq!(count.wakes(), 1);
    assert_eq!(publication.status(four, Stage::Written), Status::Durable);
}

#[test]
fn sleeping_threads_are_woken_for_their_block() {
    let publication = Arc::new(publication());
    let threads: Vec<_> = (1..=40)
        .map(|index| {
            let publication = publication.clone();
            std::thread::spawn(move || publication.wait(ticket(1, index)))
        })
        .collect();
    for committed in [1, 2, 3, 20, 40] {
        advance(&publication, committed, committed);
    }
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Status::Durable);
    }
}

#[test]
fn sleeping_threads_are_woken_when_their_reign_ends() {
    let publication = Arc::new(publication());
    let threads = [1, 2].map(|index| {
        let publication = publication.clone();
        std::thread::spawn(move || publication.wait(ticket(1, index)))
    });
    publication.end_reign(Index(1));
    publication.wake_decided();
    publication.cut(Index(1));
    publication.wake_decided();
    let [one, two] = threads.map(|thread| thread.join().unwrap());
    assert_eq!((one, two), (Status::Cut, Status::Moved));
}
