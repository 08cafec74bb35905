//! Counts of undeliverable messages for names that are no longer in use.
//!
//! Without them, a count would be lost when the last sender to an unknown name disconnects. Only
//! the newest names are stored, so a client that sends to ever new names uses bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Limit on the stored names.
pub(super) const NAMES_MAX: usize = 1024;

#[derive(Default)]
pub(super) struct UndeliverableCounts {
    counts: HashMap<Arc<str>, Count>,
    /// The names by insertion number, oldest first.
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

struct Count {
    messages: u64,
    /// Insertion number.
    number: u64,
}

impl UndeliverableCounts {
    /// Stores the count of a name that is not stored.
    pub(super) fn store(&mut self, base: Arc<str>, messages: u64) {
        let number = self.next;
        self.next += 1;
        self.order.insert(number, base.clone());
        self.counts.insert(base, Count { messages, number });
        if self.counts.len() > NAMES_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.counts.remove(&oldest);
        }
    }

    /// Removes and returns the count of a name; 0 if there is none.
    pub(super) fn take(&mut self, base: &str) -> u64 {
        let Some(count) = self.counts.remove(base) else {
            return 0;
        };
        self.order.remove(&count.number);
        count.messages
    }

    /// Iterates over the stored names and counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let counts = self.counts.iter();
        counts.map(|(base, count)| (base, count.messages))
    }
}
