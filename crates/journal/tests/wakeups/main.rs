//! No wake-up is lost, in any thread schedule.
//!
//! The sources of publication, followers and the doorbell are compiled here a second time, with
//! locks, atomics and threads that shuttle schedules. If a thread sleeps forever while all others
//! have ended, shuttle reports a deadlock with its schedule. There is no test harness: the sources'
//! own tests need real threads and are left out.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "only a part of the included sources is used"
)]
#![expect(clippy::print_stdout, reason = "it is its own harness")]

#[path = "../../src/doorbell.rs"]
mod doorbell;
#[path = "../../src/followers.rs"]
mod follow;
#[path = "../../src/proposals.rs"]
mod proposals;
#[path = "../../src/publication.rs"]
mod publication;
mod sync;
#[path = "../../src/ticket.rs"]
mod ticket;
#[path = "../../src/wait_word.rs"]
mod wait_word;

use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};

use journal::{Index, Reign, ShardId, StreamId, record};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use self::doorbell::Doorbell;
use self::follow::{Follow, Followers, WakeScope};
use self::proposals::Proposals;
use self::publication::Publication;
use self::ticket::{Stage, Status, Ticket};

/// Schedules to try per check.
const SCHEDULES: usize = 400;

/// Preemptions that a bug may need, for the scheduler that looks for rare bugs.
const DEPTH: usize = 3;

fn main() {
    let checks: [(&str, fn()); 9] = [
        ("a_thread_that_waits_is_woken", threads_that_wait),
        ("a_waker_is_woken_once", wakers),
        ("a_failure_wakes_everybody", failure),
        ("a_waiter_is_not_acked_by_a_neighbour", neighbours),
        ("a_waiter_is_not_acked_by_a_later_reign", reigns),
        ("one_registration_lasts_until_the_outcome", registrations),
        ("a_follower_sees_or_is_woken", followers),
        ("the_line_hears_every_ring", rings),
        ("a_proposer_sees_every_block", proposer),
    ];
    for (name, check) in checks {
        shuttle::check_random(check, SCHEDULES);
        shuttle::check_pct(check, SCHEDULES, DEPTH);
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed", checks.len());
}

/// A count of wakes to sleep for. Unlike a parked thread, it is never woken without a wake.
#[derive(Default)]
struct Wakes {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }
}

impl Wakes {
    fn sleep(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count == 0 {
            count = self
                .changed
                .wait(count)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *count -= 1;
    }
}

/// Returns a publication in its first reign.
fn leading() -> Publication {
    let publication = Publication::default();
    publication.begin_reign(Reign(1));
    publication
}

/// Returns the ticket of a block of the first reign.
fn ticket(index: u64) -> Ticket {
    Ticket {
        shard: ShardId(0),
        reign: Reign(1),
        index: Index(index),
    }
}

/// Waits for a block as a task does.
fn wait_as_task(publication: &Publication, ticket: Ticket) -> Status {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    loop {
        match publication.notify(ticket, Stage::Committed, &waker) {
            Status::Pending => wakes.sleep(),
            status => return status,
        }
    }
}

/// Publishes and wakes as the line does.
fn advance(publication: &Publication, last: u64) {
    let progress = publication.advance(Index(last), Index(last));
    publication.wake(progress);
}

fn threads_that_wait() {
    let publication = Arc::new(leading());
    let waiters: Vec<_> = [1, 2, 2, 5]
        .map(|index| {
            let publication = publication.clone();
            thread::spawn(move || publication.wait(ticket(index)))
        })
        .into();
    for durable in [1, 3, 5] {
        advance(&publication, durable);
    }
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap_or(Status::Failed), Status::Durable);
    }
}

fn wakers() {
    let publication = Arc::new(leading());
    let waiters: Vec<_> = [2, 1, 3]
        .map(|index| {
            let publication = publication.clone();
            thread::spawn(move || wait_as_task(&publication, ticket(index)))
        })
        .into();
    for durable in [1, 3] {
        advance(&publication, durable);
    }
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap_or(Status::Failed), Status::Durable);
    }
}

fn failure() {
    let publication = Arc::new(leading());
    let task = {
        let publication = publication.clone();
        thread::spawn(move || wait_as_task(&publication, ticket(2)))
    };
    let sleeper = {
        let publication = publication.clone();
        thread::spawn(move || publication.wait(ticket(3)))
    };
    advance(&publication, 1);
    publication.fail();
    for waiter in [task, sleeper] {
        assert_eq!(waiter.join().unwrap_or(Status::Durable), Status::Failed);
    }
    assert_eq!(
        publication.status(ticket(1), Stage::Committed),
        Status::Durable
    );
}

/// Two shards, each with its own disk that reports when a block is durable.
fn neighbours() {
    let shards = Arc::new([(); 2].map(|()| (leading(), AtomicU64::new(0))));
    let waiters: Vec<_> = [(0, 1), (1, 1), (0, 2), (1, 2)]
        .map(|(shard, index)| {
            let shards = shards.clone();
            thread::spawn(move || {
                let (publication, on_disk) = &shards[shard];
                assert_eq!(publication.wait(ticket(index)), Status::Durable);
                assert!(on_disk.load(Ordering::SeqCst) >= index, "acked too early");
            })
        })
        .into();
    for (shard, durable) in [(0, 1), (1, 2), (0, 2)] {
        let (publication, on_disk) = &shards[shard];
        on_disk.store(durable, Ordering::SeqCst);
        advance(publication, durable);
    }
    for waiter in waiters {
        assert!(waiter.join().is_ok());
    }
}

/// A reign ends after its first block was taken, and later blocks have the indexes of its others.
fn reigns() {
    let publication = Arc::new(leading());
    let is_cut = Arc::new(AtomicU64::new(0));
    let waiters: Vec<_> = [(1, true), (2, false), (3, true)]
        .map(|(index, is_task)| {
            let (publication, is_cut) = (publication.clone(), is_cut.clone());
            thread::spawn(move || {
                let status = match is_task {
                    true => wait_as_task(&publication, ticket(index)),
                    false => publication.wait(ticket(index)),
                };
                let cut = is_cut.load(Ordering::SeqCst);
                let expected = match (index, cut) {
                    (3, _) => Status::Moved,
                    (2, 1) => Status::Cut,
                    (1, _) => Status::Durable,
                    _ => panic!("{status:?} for block {index} before the cut"),
                };
                assert_eq!(status, expected, "block {index}");
            })
        })
        .into();
    publication.end_reign(Index(2));
    publication.wake_decided();
    is_cut.store(1, Ordering::SeqCst);
    publication.cut(Index(2));
    publication.wake_decided();
    publication.begin_reign(Reign(2));
    advance(&publication, 3);
    for waiter in waiters {
        assert!(waiter.join().is_ok());
    }
}

/// Waits for a block as a connection does: it registers its waker once.
fn wait_registered(publication: &Publication, ticket: Ticket, stage: Stage) -> Status {
    let wakes = Arc::new(Wakes::default());
    let mut status = publication.notify(ticket, stage, &Waker::from(wakes.clone()));
    while status == Status::Pending {
        wakes.sleep();
        status = publication.status(ticket, stage);
    }
    status
}

/// A reign ends, its second block is cut, and another takes its place, while the line is late to
/// wake the waiters of the first two.
fn registrations() {
    let publication = Arc::new(leading());
    let wait = |ticket, stage, expected: &'static [Status]| {
        let publication = publication.clone();
        thread::spawn(move || {
            let status = wait_registered(&publication, ticket, stage);
            assert!(expected.contains(&status), "{ticket:?} is {status:?}");
        })
    };
    let (written, committed) = (Stage::Written, Stage::Committed);
    let mut waiters = vec![
        wait(ticket(1), committed, &[Status::Durable]),
        wait(ticket(2), written, &[Status::Durable, Status::Cut]),
        wait(ticket(2), committed, &[Status::Cut]),
        wait(ticket(3), committed, &[Status::Moved]),
    ];
    let progress = publication.advance(Index(2), Index(0));
    let late = publication.clone();
    waiters.push(thread::spawn(move || late.wake(progress)));
    publication.end_reign(Index(2));
    publication.wake_decided();
    publication.cut(Index(2));
    publication.wake_decided();
    publication.begin_reign(Reign(2));
    let instead = Ticket {
        reign: Reign(2),
        ..ticket(2)
    };
    waiters.push(wait(instead, written, &[Status::Durable]));
    waiters.push(wait(instead, committed, &[Status::Durable]));
    for (written, committed) in [(2, 1), (2, 2)] {
        let progress = publication.advance(Index(written), Index(committed));
        publication.wake(progress);
    }
    for waiter in waiters {
        assert!(waiter.join().is_ok());
    }
}

/// Appends a record to a stream while a follower registers.
fn followers() {
    let followers = Arc::new(Followers::default());
    let next = Arc::new(AtomicU64::new(0));
    let reader = {
        let (followers, next) = (followers.clone(), next.clone());
        thread::spawn(move || {
            let wakes = Arc::new(Wakes::default());
            let waker = Waker::from(wakes.clone());
            let has_grown = || next.load(Ordering::SeqCst) > 0;
            while !has_grown() {
                match followers.add(ShardId(0), StreamId(7), &waker, has_grown) {
                    Follow::Waiting(_) => wakes.sleep(),
                    Follow::Ready => {}
                    Follow::Refused => unreachable!("one follower"),
                }
            }
        })
    };
    let mut body = Vec::new();
    let grown = record::RecordView {
        stream: StreamId(7),
        offset: 0,
        kind: record::RecordKind::Data,
        tag: 0,
        bytes: b"x",
    };
    record::encode(&grown, &mut body);
    next.store(1, Ordering::SeqCst);
    followers.wake_scope(WakeScope::StreamsIn(vec![body.into()]));
    assert!(reader.join().is_ok());
}

/// Two writers add blocks: one rings for each, one for all at the end of a round. The line sleeps
/// whenever it has seen everything.
fn rings() {
    let doorbell = Arc::new(Doorbell::default());
    let blocks: Arc<[AtomicU64; 2]> = Arc::default();
    let writers: Vec<_> = [0, 1]
        .map(|shard| {
            let (doorbell, blocks) = (doorbell.clone(), blocks.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    blocks[shard].fetch_add(1, Ordering::SeqCst);
                    match shard {
                        0 => doorbell.ring(ShardId(0)),
                        _ => doorbell.mark(ShardId(shard as u16)),
                    }
                }
                doorbell.wake_if_rung();
            })
        })
        .into();
    let mut written = 0;
    while written < 4 {
        let rung = doorbell.take_marked();
        for (shard, blocks) in blocks.iter().enumerate() {
            if rung & (1 << shard) != 0 {
                written += blocks.swap(0, Ordering::SeqCst);
            }
        }
        if rung == 0 {
            doorbell.sleep(None);
        }
    }
    for writer in writers {
        assert!(writer.join().is_ok());
    }
}

/// Two writers add blocks like those of [`rings`]; the task that proposes them waits whenever it has
/// seen everything.
fn proposer() {
    let proposals = Arc::new(Proposals::default());
    let blocks: Arc<[AtomicU64; 2]> = Arc::default();
    let writers: Vec<_> = [0, 1]
        .map(|shard| {
            let (proposals, blocks) = (proposals.clone(), blocks.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    blocks[shard].fetch_add(1, Ordering::SeqCst);
                    match shard {
                        0 => proposals.ring(ShardId(0)),
                        _ => proposals.mark(ShardId(shard as u16)),
                    }
                }
                proposals.wake_if_rung();
            })
        })
        .into();
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut proposed = 0;
    while proposed < 4 {
        let marked = proposals.take_marked(&waker);
        for (shard, blocks) in blocks.iter().enumerate() {
            if marked & (1 << shard) != 0 {
                proposed += blocks.swap(0, Ordering::SeqCst);
            }
        }
        if marked == 0 {
            wakes.sleep();
        }
    }
    for writer in writers {
        assert!(writer.join().is_ok());
    }
}
