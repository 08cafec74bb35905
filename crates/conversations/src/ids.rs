//! The message ids of a conversation, which make retries idempotent as long as a message is
//! retained.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hashbrown::HashTable;

/// Number of newest messages whose ids stay in memory. Ids of older messages take 10 to 20 bytes
/// each once they are needed.
pub const IDS_KEPT: usize = 1024;

/// Maximum number of messages; numbers are stored in 32 bits.
pub(crate) const MESSAGES_MAX: u64 = u32::MAX as u64;

/// Returns the hash of an id. It is used in memory only: stored data does not depend on it.
pub fn id_hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// The id hashes of the newest messages. A hash gives candidates; the message record decides.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The first message whose id is known.
    first: u64,
    /// The number of the next message.
    next: u64,
    /// An entry for each known id: the upper half of its hash and the message number.
    known: HashTable<u64>,
}

impl Ids {
    /// Creates an empty set for a conversation whose next message is `next`.
    pub(crate) fn new(next: u64) -> Self {
        Self {
            first: next,
            next,
            known: HashTable::new(),
        }
    }

    /// Returns the first message whose id is known; all later ones are known too.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Adds the id of the next message. `start` is the first retained message: if the ids of all
    /// retained messages are known, none is dropped.
    pub(crate) fn push(&mut self, hash: u64, start: u64) {
        self.insert(hash, self.next);
        self.next += 1;
        // Old ids are dropped in batches, because finding them takes a scan of the whole table.
        if self.first > start && self.next - self.first >= 2 * IDS_KEPT as u64 {
            self.forget_older();
        }
    }

    fn insert(&mut self, hash: u64, seq: u64) {
        let packed = packed(hash, seq);
        self.known
            .insert_unique(spread(packed), packed, |it| spread(*it));
    }

    /// Adds the ids of a range of older messages, which must adjoin the known ids. Returns false if
    /// it adds nothing.
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

    /// Drops the ids of messages before `start`, which are no longer retained.
    pub(crate) fn trim(&mut self, start: u64) {
        if start > self.first {
            self.known.retain(|it| u64::from(*it as u32) >= start);
            self.known.shrink_to(2 * IDS_KEPT, |it| spread(*it));
            self.first = start;
            self.next = self.next.max(start);
        }
    }

    /// Drops all ids but those of the newest messages.
    pub(crate) fn forget_older(&mut self) {
        self.trim(self.next.saturating_sub(IDS_KEPT as u64));
    }

    /// Returns the messages whose id may have that hash.
    pub(crate) fn find(&self, hash: u64) -> impl Iterator<Item = u64> + '_ {
        let wanted = packed(hash, 0);
        let found = self.known.iter_hash(spread(wanted));
        let found = found.filter(move |it| *it & !MESSAGES_MAX == wanted);
        found.map(|it| *it & MESSAGES_MAX)
    }

    /// Returns the memory used, in bytes.
    pub(crate) fn memory_size(&self) -> usize {
        self.known.allocation_size()
    }
}

fn packed(hash: u64, seq: u64) -> u64 {
    hash & !MESSAGES_MAX | seq & MESSAGES_MAX
}

/// Returns the hash for the table. The table uses all bits, and the lower half of `packed` is the
/// message number.
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
        fn find_returns_exactly_the_messages_with_a_hash(
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
