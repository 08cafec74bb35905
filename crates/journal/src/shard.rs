//! A shard: its streams, its durable blocks and the block that is being built.
//!
//! One lock guards all of it. A writer decides and encodes under the lock, so records are in the
//! line in the order of decisions. Durable blocks are published under the lock too, so a reader
//! sees streams, block positions and extents of the same moment.
//!
//! In a reign that is led *alone*, closed blocks go into the line. In a *proposed* one they go to a
//! consensus, and into the line when that hands them over as decided blocks.

mod blocks;
mod building;
mod commits;
mod decided;
mod decided_block;
mod pause;
mod proposed;
mod reigns;
mod terms;
mod uncommitted;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

pub(crate) use self::blocks::{BlockBytes, BlockOrder, BuiltBlock, Trim, WrittenBlock};
use self::blocks::{BuildingBlock, ProposedBlock};
pub(crate) use self::decided::Origin;
pub use self::decided_block::{DecidedBlock, DecidedError, MEMBERS_SIZE_MAX, MEMBERS_STREAM};
use self::terms::Terms;
use self::uncommitted::Uncommitted;
use crate::block::BlockKind;
use crate::buffers::Buffers;
use crate::cache_line::CacheLine;
use crate::extent::ExtentSet;
use crate::followers::{Followers, WakeScope};
use crate::publication::{Progress, Publication};
use crate::segment::ShardEnd;
use crate::stream::Stream;
use crate::sync::Mutex;
use crate::tail::{BlockLocation, Tail};
use crate::votes::{ShardVotes, VoteWaiters};
use crate::{Index, Position, Reign, ShardId, StreamId};

/// A shard of the journal.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) state: CacheLine<Mutex<State>>,
    pub(crate) publication: CacheLine<Publication>,
    pub(crate) followers: Followers,
    pub(crate) vote_waiters: VoteWaiters,
    /// Waiters for the end of a pause.
    paused_waiters: Mutex<Vec<Waker>>,
}

/// The part of a shard that the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    id: ShardId,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    pub(crate) tail: Tail,
    pub(crate) extents: Arc<ExtentSet>,
    pub(crate) votes: ShardVotes,
    building: Option<BuildingBlock>,
    buffers: Buffers,
    /// Blocks for the line.
    closed: Vec<BuiltBlock>,
    /// Closed blocks of a proposed reign that consensus has not handed over.
    proposed: VecDeque<ProposedBlock>,
    /// Number of proposed blocks that the caller has, the oldest ones.
    offered: usize,
    /// Decided blocks that are not on disk yet.
    taken: VecDeque<DecidedBlock>,
    /// Index of the next block.
    next: Index,
    terms: Terms,
    /// Term of the current reign's blocks.
    term: u64,
    order: BlockOrder,
    /// The current reign, if there is one. Without it, nothing is appended.
    reign: Option<Reign>,
    reigns: u32,
    /// Time of the newest record.
    time_ms: u64,
    capacity: usize,
    /// Readers see blocks up to this index.
    committed: Index,
    /// Blocks up to this index are committed as soon as they are on disk here.
    commit_known: Index,
    uncommitted: Uncommitted,
    /// Blocks up to this index may be filed although the line holds blocks for peers.
    purged: Index,
    /// Trims in blocks that are not committed, in order.
    trims: VecDeque<Trim>,
    /// First void indexes of the cuts that are not in the line yet, in order.
    cuts_pending: VecDeque<Index>,
    /// Appends of the current reign are refused for a while.
    is_paused: bool,
}

impl Shard {
    pub(crate) fn new(id: ShardId, end: ShardEnd) -> Shard {
        Shard {
            id,
            state: CacheLine(Mutex::new(State::new(id, end))),
            publication: CacheLine::default(),
            followers: Followers::default(),
            vote_waiters: VoteWaiters::default(),
            paused_waiters: Mutex::default(),
        }
    }

    /// Publishes how far the shard is written and committed. The caller holds the lock of the
    /// state, and wakes the waiters after releasing it.
    pub(crate) fn advance(&self, state: &State) -> Progress {
        self.publication.advance(state.tail.last(), state.committed)
    }

    /// Returns the followers to wake for the blocks that were committed after `before`. The caller
    /// holds the lock of the state: a follower that registers later finds the blocks itself.
    pub(crate) fn touched_after(&self, state: &State, before: Index) -> WakeScope {
        if self.followers.is_empty() || state.committed == before {
            return WakeScope::Empty;
        }
        let bodies = state.committed_after(before);
        bodies.map_or(WakeScope::All, WakeScope::StreamsIn)
    }

    /// Wakes the waiters whose tickets a change of the reign or a cut has decided, and all
    /// followers.
    pub(crate) fn wake_decided(&self) {
        self.publication.wake_decided();
        self.followers.wake_all();
        self.wake_paused();
    }

    /// Wakes `waker` at the end of a pause. The caller holds the lock of the state.
    pub(crate) fn notify_resumed(&self, waker: &Waker) {
        let mut waiters = self.paused_waiters.lock();
        if !waiters.iter().any(|it| it.will_wake(waker)) {
            waiters.push(waker.clone());
        }
    }

    /// Wakes the waiters for the end of a pause, which has ended.
    pub(crate) fn wake_paused(&self) {
        let waiters = std::mem::take(&mut *self.paused_waiters.lock());
        waiters.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn new(id: ShardId, end: ShardEnd) -> State {
        let next = Index(end.index.0 + 1);
        State {
            id,
            streams: BTreeMap::new(),
            tail: Tail::starting_at(next),
            extents: Arc::default(),
            votes: ShardVotes::default(),
            building: None,
            buffers: Buffers::default(),
            closed: Vec::new(),
            proposed: VecDeque::new(),
            offered: 0,
            taken: VecDeque::new(),
            next,
            terms: Terms::after(end),
            term: end.term,
            order: BlockOrder::Alone,
            reign: None,
            reigns: 0,
            time_ms: 0,
            capacity: 0,
            committed: end.index,
            commit_known: end.index,
            uncommitted: Uncommitted::default(),
            purged: end.index,
            trims: VecDeque::new(),
            cuts_pending: VecDeque::new(),
            is_paused: false,
        }
    }

    /// Returns the shard's last block, on disk or not.
    pub(crate) fn end(&self) -> ShardEnd {
        ShardEnd {
            index: Index(self.next.0 - 1),
            term: self.terms.last(),
        }
    }

    /// Returns the terms of the shard's blocks, on disk or not.
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Records that a block is on disk, directly after the previous one. A block that a later cut
    /// voids is in the line and in no other place.
    pub(crate) fn place(&mut self, written: WrittenBlock) {
        match written.kind {
            BlockKind::Cut => {
                self.cuts_pending.pop_front();
            }
            BlockKind::Vote => self.votes.place(),
            _ if self.cuts_pending.iter().any(|cut| *cut <= written.index) => {}
            _ => {
                debug_assert_eq!(written.index.0, self.tail.last().0 + 1);
                if self
                    .taken
                    .front()
                    .is_some_and(|it| it.index == written.index)
                {
                    self.taken.pop_front();
                }
                self.tail.push(written.location, written.body);
            }
        }
    }

    /// Drops the bodies of blocks up to `index` from memory.
    pub(crate) fn forget(&mut self, index: Index) {
        self.tail.forget(index, |body| self.buffers.give(body));
    }

    /// Frees the memory that is held for future blocks.
    pub(crate) fn rest(&mut self) {
        self.buffers.clear();
        self.capacity = 0;
    }

    /// Drops the blocks up to `index`, which are filed. Returns true if there were any.
    pub(crate) fn file(&mut self, index: Index) -> bool {
        self.terms.file(index);
        self.tail.file(index)
    }

    /// Adds a block that recovery found and checked.
    pub(crate) fn replay(&mut self, index: Index, term: u64, location: BlockLocation, body: &[u8]) {
        self.tail.push_unread(location);
        self.apply(location.kind, index, term, location.time_ms, body);
    }

    /// Adds empty entries for missing blocks up to `last`; they have no records.
    pub(crate) fn skip_to(&mut self, last: Index, position: Position) {
        while self.next <= last {
            self.tail.push_unread(BlockLocation {
                position,
                length: 0,
                kind: BlockKind::Lost,
                time_ms: self.time_ms,
            });
            self.uncommitted.add(0);
            self.next.0 += 1;
        }
    }
}
