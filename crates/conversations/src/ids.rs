//! Which number a message's id may have: what makes a retry idempotent for as long as a message is
//! kept.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

/// Newest messages whose ids are known without another thought; those of the older ones cost eight
/// bytes each, once somebody needs them.
pub const IDS_KEPT: usize = 1024;

/// Numbers are counted from the first one here in 32 bits.
pub(crate) const MESSAGES_MAX: u64 = u32::MAX as u64;

/// What is remembered of an id, in memory only: nothing on disk depends on it.
pub fn id_hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// The hashes of the ids of messages up to the newest. A hash says where an id may stand; the
/// record says whether it does.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The first message whose id is known.
    first: u64,
    /// Of the newest messages, in order.
    newest: VecDeque<u64>,
    /// Of those before, from `first` on: upper half of the hash, number; sorted.
    older: Vec<u64>,
    /// The same, not yet sorted in; at most [`IDS_KEPT`].
    loose: Vec<u64>,
}

impl Ids {
    /// Of a conversation whose next message is `next`: nothing is known yet.
    pub(crate) fn new(next: u64) -> Self {
        Self {
            first: next,
            newest: VecDeque::new(),
            older: Vec::new(),
            loose: Vec::new(),
        }
    }

    /// The first message whose id is known; all behind it are.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    fn newest_first(&self) -> u64 {
        self.first + (self.older.len() + self.loose.len()) as u64
    }

    /// The next message has that hash. `start` is the first message that is kept.
    pub(crate) fn push(&mut self, hash: u64, start: u64) {
        self.newest.push_back(hash);
        self.shed(start);
    }

    /// The messages that end where knowledge begins have these hashes; what is known already is
    /// passed over. Returns whether that was new.
    pub(crate) fn learn(&mut self, from: u64, hashes: &[u64]) -> bool {
        let end = from.saturating_add(hashes.len() as u64);
        if from >= self.first || end < self.first {
            return false;
        }
        let new = &hashes[..(self.first - from) as usize];
        let is_tail = self.older.is_empty() && self.loose.is_empty();
        let room = IDS_KEPT.saturating_sub(self.newest.len());
        let newest_count = if is_tail { room.min(new.len()) } else { 0 };
        let (older, newest) = new.split_at(new.len() - newest_count);
        for hash in newest.iter().rev() {
            self.newest.push_front(*hash);
        }
        let older = older.iter().zip(from..);
        self.older
            .extend(older.map(|(hash, seq)| packed(*hash, seq)));
        self.older.sort_unstable();
        self.first = from;
        true
    }

    /// Messages before `start` are not kept any more.
    pub(crate) fn trim(&mut self, start: u64) {
        if start <= self.first {
            return;
        }
        let newest_first = self.newest_first();
        let is_kept = |packed: &u64| u64::from(*packed as u32) >= start;
        self.older.retain(is_kept);
        self.loose.retain(is_kept);
        let gone = start.saturating_sub(newest_first) as usize;
        self.newest.drain(..gone.min(self.newest.len()));
        self.first = start;
    }

    /// Forgets all but the newest.
    pub(crate) fn forget_older(&mut self) {
        self.first = self.newest_first();
        self.older = Vec::new();
        self.loose = Vec::new();
    }

    /// What is too much for the newest joins the older ones if those are known, and is forgotten if
    /// not.
    fn shed(&mut self, start: u64) {
        while self.newest.len() > IDS_KEPT {
            let seq = self.newest_first();
            let Some(hash) = self.newest.pop_front() else {
                return;
            };
            if self.first == seq && seq > start {
                self.first = seq + 1;
                continue;
            }
            self.loose.push(packed(hash, seq));
            if self.loose.len() == IDS_KEPT {
                self.loose.sort_unstable();
                self.older.append(&mut self.loose);
                // Two sorted runs: the stable sort merges them in linear time.
                self.older.sort();
            }
        }
    }

    /// The messages that may have an id of that hash.
    pub(crate) fn find(&self, hash: u64) -> impl Iterator<Item = u64> + '_ {
        let newest = self.newest_first()..;
        let newest = newest.zip(&self.newest);
        let newest = newest.filter(move |(_, known)| **known == hash);
        let of_hash = range(hash);
        let begin = self.older.partition_point(|it| *it < of_hash.start);
        let older = self.older[begin..].iter();
        let end = of_hash.end;
        let older = older.take_while(move |it| **it <= end);
        let loose = self.loose.iter();
        let loose = loose.filter(move |it| (of_hash.start..=of_hash.end).contains(it));
        let newest = newest.map(|(seq, _)| seq);
        newest.chain(loose.chain(older).map(|it| u64::from(*it as u32)))
    }

    /// Bytes of memory.
    pub(crate) fn memory_size(&self) -> usize {
        8 * (self.newest.capacity() + self.older.capacity() + self.loose.capacity())
    }
}

fn packed(hash: u64, seq: u64) -> u64 {
    hash & !MESSAGES_MAX | seq & MESSAGES_MAX
}

/// First and last packed value of a hash.
fn range(hash: u64) -> Range<u64> {
    packed(hash, 0)..packed(hash, MESSAGES_MAX)
}
