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
    /// Of the newest messages: [`IDS_KEPT`] where there are so many, and less than twice that.
    newest: Newest,
    /// Of those before, without a gap: upper half of the hash, number; sorted.
    older: Vec<u64>,
}

impl Ids {
    /// Of a conversation whose next message is `next`: nothing is known yet.
    pub(crate) fn new(next: u64) -> Self {
        Self {
            newest: Newest::new(next),
            older: Vec::new(),
        }
    }

    /// The first message whose id is known; all behind it are.
    pub(crate) fn first(&self) -> u64 {
        self.newest.first - self.older.len() as u64
    }

    /// The next message has that hash. `start` is the first message that is kept.
    pub(crate) fn push(&mut self, hash: u64, start: u64) {
        self.newest.push(hash);
        if self.newest.known.len() == 2 * IDS_KEPT {
            self.shed(start);
        }
    }

    /// What is too much for the newest joins the older ones if those are known, and is forgotten if
    /// not.
    fn shed(&mut self, start: u64) {
        let is_known = !self.older.is_empty() || self.first() <= start;
        let shed = self.newest.shed(IDS_KEPT);
        if is_known {
            self.older.extend(shed);
            // A sorted run and a short one: the stable sort merges them in linear time.
            self.older.sort();
        }
    }

    /// The messages that end where knowledge begins have these hashes; what is known already is
    /// passed over. Returns whether that was new.
    pub(crate) fn learn(&mut self, from: u64, hashes: &[u64]) -> bool {
        let first = self.first();
        let end = from.saturating_add(hashes.len() as u64);
        if from >= first || end < first {
            return false;
        }
        let new = &hashes[..(first - from) as usize];
        let room = match self.older.is_empty() {
            true => IDS_KEPT.saturating_sub(self.newest.known.len()),
            false => 0,
        };
        let (older, newest) = new.split_at(new.len() - room.min(new.len()));
        self.newest.learn(newest);
        let older = older.iter().zip(from..);
        self.older
            .extend(older.map(|(hash, seq)| packed(*hash, seq)));
        self.older.sort_unstable();
        true
    }

    /// Messages before `start` are not kept any more.
    pub(crate) fn trim(&mut self, start: u64) {
        if start <= self.first() {
            return;
        }
        self.older.retain(|it| u64::from(*it as u32) >= start);
        self.newest.trim(start);
    }

    /// Forgets all but the newest.
    pub(crate) fn forget_older(&mut self) {
        self.older = Vec::new();
        let surplus = self.newest.known.len().saturating_sub(IDS_KEPT);
        self.newest.trim(self.newest.first + surplus as u64);
    }

    /// The messages that may have an id of that hash.
    pub(crate) fn find(&self, hash: u64) -> impl Iterator<Item = u64> + '_ {
        let of_hash = range(hash);
        let begin = self.older.partition_point(|it| *it < of_hash.start);
        let older = self.older[begin..].iter();
        let older = older.take_while(move |it| **it <= of_hash.end);
        let older = older.map(|it| u64::from(*it as u32));
        self.newest.find(hash).chain(older)
    }

    /// Bytes of memory.
    pub(crate) fn memory_size(&self) -> usize {
        self.newest.memory_size() + size_of::<u64>() * self.older.capacity()
    }
}

/// Newest messages up to which all are looked at; above that each is chained to the one before it
/// that falls into the same bucket.
const UNCHAINED_MAX: usize = 32;

/// Buckets of the chains, a power of two.
const BUCKETS: usize = IDS_KEPT;

/// The hashes of messages that follow each other. A chain goes from newer to older and ends with the
/// first message that is not here any more, so that nothing has to be unchained.
#[derive(Debug)]
struct Newest {
    /// The first of them.
    first: u64,
    known: VecDeque<Known>,
    /// The newest message of each bucket; none while there are few.
    heads: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    hash: u64,
    /// The message before it in its bucket; 0 for none.
    before: u32,
}

impl Newest {
    fn new(next: u64) -> Self {
        Self {
            first: next,
            known: VecDeque::new(),
            heads: Vec::new(),
        }
    }

    fn push(&mut self, hash: u64) {
        let seq = self.first + self.known.len() as u64;
        self.known.push_back(Known { hash, before: 0 });
        match self.heads.is_empty() {
            true if self.known.len() <= UNCHAINED_MAX => {}
            true => self.chain(),
            false => self.link(seq),
        }
    }

    /// The messages before the first one have these hashes.
    fn learn(&mut self, hashes: &[u64]) {
        for hash in hashes.iter().rev() {
            let known = Known {
                hash: *hash,
                before: 0,
            };
            self.known.push_front(known);
        }
        self.first -= hashes.len() as u64;
        if self.known.len() > UNCHAINED_MAX {
            self.chain();
        }
    }

    /// Takes away the oldest, packed and sorted.
    fn shed(&mut self, count: usize) -> Vec<u64> {
        let shed = self.known.drain(..count).zip(self.first..);
        let mut shed: Vec<u64> = shed.map(|(known, seq)| packed(known.hash, seq)).collect();
        shed.sort_unstable();
        self.first += count as u64;
        shed
    }

    /// Messages before `start` are not here any more.
    fn trim(&mut self, start: u64) {
        if let Some(gone) = start.checked_sub(self.first) {
            let gone = self.known.len().min(gone as usize);
            self.known.drain(..gone);
            self.first = start;
        }
    }

    fn chain(&mut self) {
        self.heads = vec![0; BUCKETS];
        for seq in self.first..self.first + self.known.len() as u64 {
            self.link(seq);
        }
    }

    fn link(&mut self, seq: u64) {
        let known = &mut self.known[(seq - self.first) as usize];
        let head = &mut self.heads[bucket(known.hash)];
        known.before = std::mem::replace(head, seq as u32);
    }

    fn find(&self, hash: u64) -> impl Iterator<Item = u64> + '_ {
        let few = match self.heads.is_empty() {
            true => self.known.len(),
            false => 0,
        };
        let few = self.known.range(..few).zip(self.first..);
        let few = few.filter(move |(known, _)| known.hash == hash);
        let head = self.heads.get(bucket(hash)).copied().unwrap_or(0);
        let chain = std::iter::successors(self.at(head), |(_, known)| self.at(known.before));
        let chain = chain.filter(move |(_, known)| known.hash == hash);
        let few = few.map(|(_, seq)| seq);
        few.chain(chain.map(|(seq, _)| seq))
    }

    fn at(&self, seq: u32) -> Option<(u64, Known)> {
        let seq = u64::from(seq);
        let place = seq.checked_sub(self.first)?;
        Some((seq, *self.known.get(place as usize)?))
    }

    fn memory_size(&self) -> usize {
        size_of::<Known>() * self.known.capacity() + size_of::<u32>() * self.heads.capacity()
    }
}

fn bucket(hash: u64) -> usize {
    hash as usize % BUCKETS
}

fn packed(hash: u64, seq: u64) -> u64 {
    hash & !MESSAGES_MAX | seq & MESSAGES_MAX
}

/// First and last packed value of a hash.
fn range(hash: u64) -> Range<u64> {
    packed(hash, 0)..packed(hash, MESSAGES_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Learn(usize),
        Trim(u64),
        Forget,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1_usize..1500).prop_map(Step::Push),
            2 => (1_usize..1500).prop_map(Step::Learn),
            1 => (1_u64..1500).prop_map(Step::Trim),
            1 => Just(Step::Forget),
        ]
    }

    /// Few hashes, so that many messages share one; they differ in both halves.
    fn hash(seq: u64) -> u64 {
        (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) * 0x1_0000_0401
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn exactly_the_messages_of_a_hash_are_found(
            before in 0_u64..4000,
            steps in prop::collection::vec(step(), 1..12),
        ) {
            let (mut start, mut head) = (1, before);
            let mut ids = Ids::new(head + 1);
            for step in steps {
                match step {
                    Step::Push(count) => for _ in 0..count {
                        head += 1;
                        ids.push(hash(head), start);
                    }
                    Step::Learn(count) => {
                        let from = ids.first().saturating_sub(count as u64).max(start);
                        let hashes: Vec<u64> = (from..=head).map(hash).collect();
                        let is_new = from < ids.first();
                        prop_assert_eq!(ids.learn(from, &hashes), is_new);
                        prop_assert_eq!(ids.first(), from.min(ids.first()));
                    }
                    Step::Trim(count) => {
                        start = (start + count).min(head + 1);
                        ids.trim(start);
                    }
                    Step::Forget => ids.forget_older(),
                }
                let first = ids.first();
                prop_assert!(first + (IDS_KEPT as u64) <= head + 1 || first <= before + 1 || first <= start);
                for wanted in 0..16 {
                    let wanted = wanted * 0x1_0000_0401;
                    let mut found: Vec<u64> = ids.find(wanted).collect();
                    found.sort_unstable();
                    let expected: Vec<u64> = (first..=head).filter(|it| hash(*it) == wanted).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
