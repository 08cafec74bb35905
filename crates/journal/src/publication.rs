//! Durable index of a shard, and the writers that wait for it.
//!
//! A waiter registers first and then checks the index. The publisher advances the index first and
//! then looks for waiters. So at least one of the two sees the other, and no wake-up is lost. A
//! ticket is compared with the index of its own shard: a block of another shard never acknowledges
//! it.

use std::collections::VecDeque;
use std::task::Waker;

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, futex};
use crate::{Index, ShardId};

/// Identifies the block that contains an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The block's shard.
    pub shard: ShardId,
    /// The block's index in the shard.
    pub index: Index,
}

/// State of a ticket's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not yet on disk.
    Pending,
    /// On disk.
    Durable,
    /// The line has failed. It is unknown whether the block is on disk until the journal is opened
    /// again. The caller reports *unconfirmed*.
    Failed,
}

/// Number of futex words. Threads that wait for different blocks sleep on different words, so that
/// a sync wakes only its own waiters. A shard rarely has more than two pending blocks.
const WORD_COUNT: usize = 4;

/// Durable index and waiters of one shard.
#[derive(Debug, Default)]
pub(crate) struct Publication {
    durable: AtomicU64,
    failed: AtomicBool,
    /// Sorted by index.
    waiters: Mutex<VecDeque<(Index, Waker)>>,
    words: [Word; WORD_COUNT],
}

impl Publication {
    /// Sets the durable index that recovery found.
    pub(crate) fn start_at(&self, durable: Index) {
        self.durable.store(durable.0, Ordering::SeqCst);
    }

    pub(crate) fn durable(&self) -> Index {
        Index(self.durable.load(Ordering::SeqCst))
    }

    pub(crate) fn status(&self, index: Index) -> Status {
        if index.0 <= self.durable.load(Ordering::SeqCst) {
            Status::Durable
        } else if self.failed.load(Ordering::SeqCst) {
            Status::Failed
        } else {
            Status::Pending
        }
    }

    /// Sets the durable index and returns the previous one. The caller must call
    /// [`Publication::wake`] afterwards.
    pub(crate) fn advance(&self, durable: Index) -> Index {
        Index(self.durable.swap(durable.0, Ordering::SeqCst))
    }

    /// Wakes the waiters of the blocks after `before`, up to `durable`. Advance all shards first: a
    /// woken task may look at several.
    pub(crate) fn wake(&self, before: Index, durable: Index) {
        let newest = durable.0.saturating_sub(before.0).min(WORD_COUNT as u64);
        for index in durable.0 - newest..durable.0 {
            self.word(Index(index + 1)).wake_all();
        }
        let mut waiters = self.waiters.lock();
        let served = waiters.partition_point(|(index, _)| *index <= durable);
        let woken: Vec<_> = waiters.drain(..served).collect();
        drop(waiters);
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Ends all pending tickets as failed and wakes their waiters.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.words.iter().for_each(Word::wake_all);
        let woken = std::mem::take(&mut *self.waiters.lock());
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Wakes `waker` once when the block is no longer pending. Returns the state now; unless that
    /// is pending, the waker is not stored.
    pub(crate) fn notify(&self, index: Index, waker: &Waker) -> Status {
        let mut waiters = self.waiters.lock();
        let status = self.status(index);
        if status != Status::Pending {
            return status;
        }
        let place = waiters.partition_point(|(other, _)| *other <= index);
        let is_there = place > 0 && {
            let (other, last) = &waiters[place - 1];
            *other == index && last.will_wake(waker)
        };
        if !is_there {
            waiters.insert(place, (index, waker.clone()));
        }
        Status::Pending
    }

    /// Sleeps until the block is no longer pending.
    pub(crate) fn wait(&self, index: Index) -> Status {
        let word = self.word(index);
        loop {
            let seen = word.look();
            let status = self.status(index);
            if status != Status::Pending {
                return status;
            }
            word.sleep_while(seen);
        }
    }

    fn word(&self, index: Index) -> &Word {
        &self.words[(index.0 % WORD_COUNT as u64) as usize]
    }
}

/// A futex word with a count of its sleepers.
#[derive(Debug, Default)]
struct Word {
    wakes: AtomicU32,
    sleepers: AtomicU32,
}

impl Word {
    /// Returns the value for [`Word::sleep_while`]. Call it before checking the condition.
    fn look(&self) -> u32 {
        self.wakes.load(Ordering::SeqCst)
    }

    /// Sleeps unless the word was woken after `seen` was read. May return spuriously.
    fn sleep_while(&self, seen: u32) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        futex::sleep_while(&self.wakes, seen);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake_all(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&self.wakes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    fn advance(publication: &Publication, durable: Index) {
        let before = publication.advance(durable);
        publication.wake(before, durable);
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn waker_is_woken_once_when_its_block_is_durable() {
        let publication = Publication::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        assert_eq!(publication.notify(Index(2), &waker), Status::Pending);
        assert_eq!(publication.notify(Index(2), &waker), Status::Pending);
        advance(&publication, Index(1));
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
        advance(&publication, Index(3));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        advance(&publication, Index(4));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(publication.notify(Index(4), &waker), Status::Durable);
    }

    #[test]
    fn a_failure_wakes_all_waiters_and_durable_indexes_stay_durable() {
        let publication = Publication::default();
        advance(&publication, Index(1));
        let count = Arc::new(Count::default());
        publication.notify(Index(5), &Waker::from(count.clone()));
        publication.fail();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(publication.status(Index(1)), Status::Durable);
        assert_eq!(publication.wait(Index(2)), Status::Failed);
    }

    #[test]
    fn sleeping_threads_are_woken_for_their_block() {
        let publication = Arc::new(Publication::default());
        let threads: Vec<_> = (1..=40)
            .map(|index| {
                let publication = publication.clone();
                std::thread::spawn(move || publication.wait(Index(index)))
            })
            .collect();
        for durable in [1, 2, 3, 20, 40] {
            advance(&publication, Index(durable));
        }
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Status::Durable);
        }
    }
}
