//! How many messages found nobody, of names that nobody uses any more.
//!
//! Whoever sends once to a name that nobody has and leaves would otherwise take the count along. Only
//! the newest names are kept: somebody who sends to ever new names costs no more than that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Names that are kept.
pub(super) const NAMES_MAX: usize = 1024;

#[derive(Default)]
pub(super) struct Missed {
    counts: HashMap<Arc<str>, Count>,
    /// The names by when they came, oldest first.
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

struct Count {
    messages: u64,
    /// When it came, on a clock that counts names.
    came: u64,
}

impl Missed {
    /// Keeps the count of a name that is not kept.
    pub(super) fn keep(&mut self, base: Arc<str>, messages: u64) {
        let came = self.next;
        self.next += 1;
        self.order.insert(came, base.clone());
        self.counts.insert(base, Count { messages, came });
        if self.counts.len() > NAMES_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.counts.remove(&oldest);
        }
    }

    /// Hands back the count of a name that is used again, 0 if none is kept.
    pub(super) fn take(&mut self, base: &str) -> u64 {
        let Some(count) = self.counts.remove(base) else {
            return 0;
        };
        self.order.remove(&count.came);
        count.messages
    }

    /// Every name that is kept, with its count.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let counts = self.counts.iter();
        counts.map(|(base, count)| (base, count.messages))
    }
}
