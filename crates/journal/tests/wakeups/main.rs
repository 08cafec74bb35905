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
#[path = "../../src/publication.rs"]
mod publication;
mod sync;

use std::sync::Arc;
use std::task::{Wake, Waker};

use journal::{Index, ShardId, StreamId, record};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use self::doorbell::Doorbell;
use self::follow::{Follow, Followers};
use self::publication::{Publication, Status};

/// Schedules to try per check.
const SCHEDULES: usize = 400;

/// Preemptions that a bug may need, for the scheduler that looks for rare bugs.
const DEPTH: usize = 3;

fn main() {
    let checks: [(&str, fn()); 6] = [
        ("a_thread_that_waits_is_woken", threads_that_wait),
        ("a_waker_is_woken_once", wakers),
        ("a_failure_wakes_everybody", failure),
        ("a_waiter_is_not_acked_by_a_neighbour", neighbours),
        ("a_follower_sees_or_is_woken", followers),
        ("the_line_hears_every_ring", rings),
    ];
    for (name, check) in checks {
        shuttle::check_random(check, SCHEDULES);
        shuttle::check_pct(check, SCHEDULES, DEPTH);
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed", checks.len());
}

/// Sleeps like a task, until it is woken.
struct Sleeper(thread::Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a block as a task does.
fn wait_as_task(publication: &Publication, index: Index) -> Status {
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    loop {
        match publication.notify(index, &waker) {
            Status::Pending => thread::park(),
            status => return status,
        }
    }
}

/// Publishes and wakes as the line does.
fn advance(publication: &Publication, durable: Index) {
    let before = publication.advance(durable);
    publication.wake(before, durable);
}

fn threads_that_wait() {
    let publication = Arc::new(Publication::default());
    let waiters: Vec<_> = [1, 2, 2, 5]
        .map(|index| {
            let publication = publication.clone();
            thread::spawn(move || publication.wait(Index(index)))
        })
        .into();
    for durable in [1, 3, 5] {
        advance(&publication, Index(durable));
    }
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap_or(Status::Failed), Status::Durable);
    }
}

fn wakers() {
    let publication = Arc::new(Publication::default());
    let waiters: Vec<_> = [2, 1, 3]
        .map(|index| {
            let publication = publication.clone();
            thread::spawn(move || wait_as_task(&publication, Index(index)))
        })
        .into();
    for durable in [1, 3] {
        advance(&publication, Index(durable));
    }
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap_or(Status::Failed), Status::Durable);
    }
}

fn failure() {
    let publication = Arc::new(Publication::default());
    let task = {
        let publication = publication.clone();
        thread::spawn(move || wait_as_task(&publication, Index(2)))
    };
    let sleeper = {
        let publication = publication.clone();
        thread::spawn(move || publication.wait(Index(3)))
    };
    advance(&publication, Index(1));
    publication.fail();
    for waiter in [task, sleeper] {
        assert_eq!(waiter.join().unwrap_or(Status::Durable), Status::Failed);
    }
    assert_eq!(publication.status(Index(1)), Status::Durable);
}

/// Two shards, each with its own disk that reports when a block is durable.
fn neighbours() {
    let shards: Arc<[(Publication, AtomicU64); 2]> = Arc::default();
    let waiters: Vec<_> = [(0, 1), (1, 1), (0, 2), (1, 2)]
        .map(|(shard, index)| {
            let shards = shards.clone();
            thread::spawn(move || {
                let (publication, on_disk) = &shards[shard];
                assert_eq!(publication.wait(Index(index)), Status::Durable);
                assert!(on_disk.load(Ordering::SeqCst) >= index, "acked too early");
            })
        })
        .into();
    for (shard, durable) in [(0, 1), (1, 2), (0, 2)] {
        let (publication, on_disk) = &shards[shard];
        on_disk.store(durable, Ordering::SeqCst);
        advance(publication, Index(durable));
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
            let waker = Waker::from(Arc::new(Sleeper(thread::current())));
            let has_grown = || next.load(Ordering::SeqCst) > 0;
            while !has_grown() {
                match followers.add(ShardId(0), StreamId(7), &waker, has_grown) {
                    Follow::Waiting(_) => thread::park(),
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
    followers.wake_touched(&body);
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
