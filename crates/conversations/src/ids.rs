//! Which number a message's id may have: what makes a retry idempotent for as long as a message is
//! kept.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hashbrown::HashTable;

/// Newest messages whose ids are known without another thought; those of the older ones cost 10 to
/// 20 bytes each, once somebody needs them.
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
    /// The message behind the newest.
    next: u64,
    /// Of each of those between: upper half of the hash, number.
    known: HashTable<u64>,
}

impl Ids {
    /// Of a conversation whose next message is `next`: nothing is known yet.
    pub(crate) fn new(next: u64) -> Self {
        Self {
            first: next,
            next,
            known: HashTable::new(),
        }
    }

    /// The first message whose id is known; all behind it are.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The next message has that hash. `start` is the first message that is kept: when the ids of all
    /// of those are known, none is forgotten.
    pub(crate) fn push(&mut self, hash: u64, start: u64) {
        self.insert(hash, self.next);
        self.next += 1;
        // Not one by one: who is to go is looked for among all of them.
        if self.first > start && self.next - self.first >= 2 * IDS_KEPT as u64 {
            self.forget_older();
        }
    }

    fn insert(&mut self, hash: u64, seq: u64) {
        let packed = packed(hash, seq);
        self.known
            .insert_unique(spread(packed), packed, |it| spread(*it));
    }

    /// The messages that end where knowledge begins have these hashes; what is known already is
    /// passed over. Returns whether that was new.
    pub(crate) fn learn(&mut self, from: u64, hashes: &[u64]) -> bool {
        let end = from.saturating_add(hashes.len() as u64);
        if from >= self.first || end < self.first {
            return false;
        }
        let new = &hashes[..(self.first - from) as usize];
        self.known.reserve(new.len(), |it| spread(*it));
        for (hash, seq) in new.iter().zip(from..) {
            self.insert(*hash, seq);
        }
        self.first = from;
        true
    }

    /// Messages before `start` are not kept any more.
    pub(crate) fn trim(&mut self, start: u64) {
        if start > self.first {
            self.known.retain(|it| u64::from(*it as u32) >= start);
            self.known.shrink_to(2 * IDS_KEPT, |it| spread(*it));
            self.first = start;
            self.next = self.next.max(start);
        }
    }

    /// Forgets all but the newest.
    pub(crate) fn forget_older(&mut self) {
        self.trim(self.next.saturating_sub(IDS_KEPT as u64));
    }

    /// The messages that may have an id of that hash.
    pub(crate) fn find(&self, hash: u64) -> impl Iterator<Item = u64> + '_ {
        let wanted = packed(hash, 0);
        let found = self.known.iter_hash(spread(wanted));
        let found = found.filter(move |it| *it & !MESSAGES_MAX == wanted);
        found.map(|it| *it & MESSAGES_MAX)
    }

    /// Bytes of memory.
    pub(crate) fn memory_size(&self) -> usize {
        self.known.allocation_size()
    }
}

fn packed(hash: u64, seq: u64) -> u64 {
    hash & !MESSAGES_MAX | seq & MESSAGES_MAX
}

/// Where in the table: it wants all bits to differ, and half of them are the number's.
fn spread(packed: u64) -> u64 {
    // 2^64 by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
    (packed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
