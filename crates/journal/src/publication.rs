//! Outcomes of a shard's blocks, and the writers that wait for them.
//!
//! A block is *written* when the line has synced it, and *committed* when no cut can void it any
//! more. A ticket names the reign in which its block was decided, because after a change of leader
//! another block may have that index: an ended reign's tickets are decided by how many of its blocks
//! were taken, and how many of those survived the cuts.
//!
//! A waiter registers first and then checks the outcome. The publisher sets the outcome first and
//! then looks for waiters. So at least one of the two sees the other, and no wake-up is lost. A task
//! stays registered until its ticket is decided: it may rely on one registration. A ticket is
//! compared with the indexes of its own shard: a block of another shard never acknowledges it.

use std::collections::VecDeque;
use std::task::Waker;

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering};
use crate::ticket::{Stage, Status, Ticket};
use crate::wait_word::Word;
use crate::{Index, Reign};

/// Number of futex words. Threads that wait for different blocks sleep on different words, so that
/// a sync wakes only its own waiters. A shard rarely has more than two pending blocks.
const WORD_COUNT: usize = 4;

/// Number of ended reigns to remember, if no ticket of an older one is pending. A ticket of a
/// forgotten reign is [`Status::Cut`].
const ENDED_REIGNS_MAX: usize = 1024;

/// Outcomes and waiters of one shard.
#[derive(Debug, Default)]
pub(crate) struct Publication {
    written: AtomicU64,
    committed: AtomicU64,
    /// The number of the current reign; 0 if there is none.
    reign: AtomicU32,
    failed: AtomicBool,
    waiting: Mutex<Waiting>,
    words: [Word; WORD_COUNT],
}

/// Waiting tasks, and what their tickets are decided by.
#[derive(Debug, Default)]
struct Waiting {
    /// Tasks that wait for a stage of a block, sorted by index.
    written: VecDeque<(Index, Waker)>,
    committed: VecDeque<(Index, Waker)>,
    /// The newest ended reigns, ascending.
    ended: VecDeque<EndedReign>,
    /// Tasks whose tickets the end of a reign or a cut has decided, to be woken.
    decided: Vec<Waker>,
}

/// A reign that has ended.
#[derive(Clone, Copy, Debug)]
struct EndedReign {
    reign: Reign,
    /// The last block that was taken.
    taken: Index,
    /// The last block that no cut has voided.
    uncut: Index,
}

/// The last committed block of a shard before a step, and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    before: Index,
    after: Index,
}

impl EndedReign {
    /// The last block that may still be committed, or is.
    fn last(&self) -> Index {
        self.taken.min(self.uncut)
    }
}

impl Waiting {
    /// Returns the tasks that wait for a stage.
    fn queue(&mut self, stage: Stage) -> &mut VecDeque<(Index, Waker)> {
        match stage {
            Stage::Written => &mut self.written,
            Stage::Committed => &mut self.committed,
        }
    }

    /// Marks the tasks that wait for a block from `index` on as decided.
    fn decide_from(&mut self, index: Index) {
        for queue in [&mut self.written, &mut self.committed] {
            let before = queue.partition_point(|(other, _)| *other < index);
            let decided = queue.drain(before..).map(|(_, waker)| waker);
            self.decided.extend(decided);
        }
    }
}

impl Publication {
    /// Sets the indexes that recovery found.
    pub(crate) fn start_at(&self, written: Index, committed: Index) {
        self.written.store(written.0, Ordering::SeqCst);
        self.committed.store(committed.0, Ordering::SeqCst);
    }

    /// Returns the last block of a stage.
    pub(crate) fn last(&self, stage: Stage) -> Index {
        Index(self.stage(stage).load(Ordering::SeqCst))
    }

    /// Begins a reign. The previous one must have ended.
    pub(crate) fn begin_reign(&self, reign: Reign) {
        let previous = self.reign.swap(reign.0, Ordering::SeqCst);
        debug_assert_eq!(previous, 0, "one reign at a time");
    }

    /// Ends the current reign. Its blocks up to `taken` will be committed or cut, later ones never
    /// exist. The caller must call [`Publication::wake_decided`] afterwards.
    pub(crate) fn end_reign(&self, taken: Index) {
        let mut waiting = self.waiting.lock();
        // A ticket of the reign is decided with the lock held from now on.
        let reign = Reign(self.reign.swap(0, Ordering::SeqCst));
        let committed = self.last(Stage::Committed);
        while waiting.ended.len() >= ENDED_REIGNS_MAX
            && let Some(oldest) = waiting.ended.front()
            && oldest.last() <= committed
        {
            waiting.ended.pop_front();
        }
        let uncut = taken;
        let ended = EndedReign {
            reign,
            taken,
            uncut,
        };
        waiting.ended.push_back(ended);
        // Pending tickets of earlier reigns are for blocks that were taken.
        waiting.decide_from(Index(taken.0 + 1));
    }

    /// Voids the blocks from `index` on; no reign may be current. The caller must call
    /// [`Publication::wake_decided`] afterwards.
    pub(crate) fn cut(&self, index: Index) {
        let last = Index(index.0 - 1);
        let mut waiting = self.waiting.lock();
        self.written.fetch_min(last.0, Ordering::SeqCst);
        for ended in &mut waiting.ended {
            ended.uncut = ended.uncut.min(last);
        }
        waiting.decide_from(index);
    }

    pub(crate) fn status(&self, ticket: Ticket, stage: Stage) -> Status {
        self.status_in_reign(ticket, stage)
            .unwrap_or_else(|| self.status_under_lock(ticket, stage, &self.waiting.lock()))
    }

    /// Returns the status of a ticket of the current reign; `None` for another reign, or without one.
    #[inline]
    fn status_in_reign(&self, ticket: Ticket, stage: Stage) -> Option<Status> {
        // The index is read before the reign: an index of a later reign comes with that reign.
        let reached = self.stage(stage).load(Ordering::SeqCst);
        let reign = self.reign.load(Ordering::SeqCst);
        if reign == 0 || reign != ticket.reign.0 {
            return None;
        }
        Some(self.compare(ticket.index, reached))
    }

    /// Returns the status of a ticket. No reign ends while the lock is held.
    fn status_under_lock(&self, ticket: Ticket, stage: Stage, waiting: &Waiting) -> Status {
        if let Some(status) = self.status_in_reign(ticket, stage) {
            return status;
        }
        if ticket.index == Index(0) {
            return Status::Durable;
        }
        let ended = &waiting.ended;
        let ended = ended.binary_search_by_key(&ticket.reign, |it| it.reign);
        match ended.map(|place| waiting.ended[place]) {
            Ok(ended) if ticket.index > ended.taken => Status::Moved,
            Ok(ended) if ticket.index <= ended.uncut => {
                self.compare(ticket.index, self.stage(stage).load(Ordering::SeqCst))
            }
            Ok(_) | Err(_) => Status::Cut,
        }
    }

    fn compare(&self, index: Index, reached: u64) -> Status {
        if index.0 <= reached {
            Status::Durable
        } else if self.failed.load(Ordering::SeqCst) {
            Status::Failed
        } else {
            Status::Pending
        }
    }

    fn stage(&self, stage: Stage) -> &AtomicU64 {
        match stage {
            Stage::Written => &self.written,
            Stage::Committed => &self.committed,
        }
    }

    /// Sets how far the shard is written and committed, and returns what that changed. The caller
    /// holds the shard's lock, and calls [`Publication::wake`] after releasing it.
    pub(crate) fn advance(&self, written: Index, committed: Index) -> Progress {
        self.written.store(written.0, Ordering::SeqCst);
        Progress {
            before: Index(self.committed.swap(committed.0, Ordering::SeqCst)),
            after: committed,
        }
    }

    /// Wakes the waiters of the blocks that made progress. Advance all shards first: a woken task
    /// may look at several.
    pub(crate) fn wake(&self, progress: Progress) {
        let Progress { before, after } = progress;
        let newest = after.0.saturating_sub(before.0).min(WORD_COUNT as u64);
        for index in after.0 - newest..after.0 {
            self.word(Index(index + 1)).wake_all();
        }
        let served = |queue: &mut VecDeque<(Index, Waker)>, stage| {
            let last = self.last(stage);
            let served = queue.partition_point(|(index, _)| *index <= last);
            queue.drain(..served).collect::<Vec<_>>()
        };
        // A cut changes what is written with the lock held.
        let mut waiting = self.waiting.lock();
        let written = served(&mut waiting.written, Stage::Written);
        let committed = served(&mut waiting.committed, Stage::Committed);
        drop(waiting);
        let woken = written.into_iter().chain(committed);
        woken.for_each(|(_, waker)| waker.wake());
    }

    /// Wakes the waiters whose tickets a cut or the end of a reign has decided.
    pub(crate) fn wake_decided(&self) {
        self.words.iter().for_each(Word::wake_all);
        let decided = std::mem::take(&mut self.waiting.lock().decided);
        decided.into_iter().for_each(Waker::wake);
    }

    /// Ends all pending tickets as failed and wakes their waiters.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.waiting.lock().decide_from(Index(0));
        self.wake_decided();
    }

    /// Wakes `waker` once when the ticket is decided. Returns the state now; unless that is pending,
    /// the waker is not stored.
    pub(crate) fn notify(&self, ticket: Ticket, stage: Stage, waker: &Waker) -> Status {
        let mut waiting = self.waiting.lock();
        let status = self.status_under_lock(ticket, stage, &waiting);
        if status != Status::Pending {
            return status;
        }
        add(waiting.queue(stage), ticket.index, waker);
        Status::Pending
    }

    /// Wakes `waker` once when the block with this index, of any reign, reaches a stage or will never
    /// do so. Returns the state now; unless that is pending, the waker is not stored.
    pub(crate) fn notify_block(&self, index: Index, stage: Stage, waker: &Waker) -> Status {
        let mut waiting = self.waiting.lock();
        let status = self.compare(index, self.stage(stage).load(Ordering::SeqCst));
        if status == Status::Pending {
            add(waiting.queue(stage), index, waker);
        }
        status
    }

    /// Sleeps until the block is committed, or will never be.
    pub(crate) fn wait(&self, ticket: Ticket) -> Status {
        let word = self.word(ticket.index);
        loop {
            let seen = word.look();
            let status = self.status(ticket, Stage::Committed);
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

/// Adds a waker to a queue, unless it is there for this index.
fn add(queue: &mut VecDeque<(Index, Waker)>, index: Index, waker: &Waker) {
    let place = queue.partition_point(|(other, _)| *other <= index);
    let is_there = place > 0 && {
        let (other, last) = &queue[place - 1];
        *other == index && last.will_wake(waker)
    };
    if !is_there {
        queue.insert(place, (index, waker.clone()));
    }
}

// The path is for `tests/wakeups`, which includes this file.
#[cfg(test)]
#[path = "publication/tests.rs"]
mod tests;
