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

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, futex};
use crate::{Index, Reign, ShardId};

/// Identifies the block that contains an append. A ticket with the index 0 is for nothing, and always
/// durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The block's shard.
    pub shard: ShardId,
    /// The reign in which the block was decided.
    pub reign: Reign,
    /// The block's index in the shard.
    pub index: Index,
}

/// The two stages of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Synced on this node's disk.
    Written,
    /// Decided for good, and visible to readers.
    Committed,
}

/// State of a ticket's block, in view of a [`Stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The block has not reached the stage yet.
    Pending,
    /// The block has reached the stage.
    Durable,
    /// The reign ended before the block was taken: it will never exist, and repeating the request is
    /// safe.
    Moved,
    /// The block was cut after its reign ended. Another leader may have decided on the same request
    /// meanwhile. The caller reports *unconfirmed*.
    Cut,
    /// The line has failed. It is unknown whether the block is on disk until the journal is opened
    /// again. The caller reports *unconfirmed*.
    Failed,
}

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
        let queue = match stage {
            Stage::Written => &mut waiting.written,
            Stage::Committed => &mut waiting.committed,
        };
        add(queue, ticket.index, waker);
        Status::Pending
    }

    /// Wakes `waker` once when the block with this index, of any reign, is written or will never be.
    /// Returns the state now; unless that is pending, the waker is not stored.
    pub(crate) fn notify_written(&self, index: Index, waker: &Waker) -> Status {
        let mut waiting = self.waiting.lock();
        let status = self.compare(index, self.written.load(Ordering::SeqCst));
        if status == Status::Pending {
            add(&mut waiting.written, index, waker);
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
}
