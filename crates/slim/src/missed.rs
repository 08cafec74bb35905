//! How many messages found nobody, by the agent that they were for.
//!
//! Only the newest names are kept: somebody who sends to ever new names costs no more than that.

use std::collections::{BTreeMap, HashMap};

use crate::name::{Name, Prefix};

/// Names that are kept.
const NAMES_MAX: usize = 1024;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Missed {
    counts: HashMap<Prefix, Count>,
    /// The names by when they came, oldest first.
    order: BTreeMap<u64, Prefix>,
    next: u64,
}

#[derive(Debug)]
struct Count {
    agent: String,
    messages: u64,
}

impl Missed {
    /// Counts a message for that name.
    pub fn count(&mut self, name: &Name<'_>) {
        let prefix = name.encoded.prefix;
        if let Some(count) = self.counts.get_mut(&prefix) {
            count.messages += 1;
            return;
        }
        if self.counts.len() >= NAMES_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.counts.remove(&oldest);
        }
        let (agent, messages) = (name.agent(), 1);
        self.counts.insert(prefix, Count { agent, messages });
        self.order.insert(self.next, prefix);
        self.next += 1;
    }

    /// Every name that is kept, and how many messages found nobody there.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, &str, u64)> {
        let counts = self.counts.iter();
        counts.map(|(prefix, count)| (*prefix, &*count.agent, count.messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_name_and_the_oldest_names_are_forgotten() {
        let mut missed = Missed::default();
        let texts: Vec<_> = (0..=NAMES_MAX).map(|index| format!("a{index}")).collect();
        for text in &texts {
            for id in [None, Some(7)] {
                missed.count(&Name::new(["org", "ns", text], id));
            }
        }
        assert_eq!(missed.iter().count(), NAMES_MAX);
        assert_eq!(missed.order.len(), NAMES_MAX);
        assert!(missed.iter().all(|(_, _, messages)| messages == 2));
        assert!(!missed.iter().any(|(_, agent, _)| agent == "org/ns/a0"));
        assert!(missed.iter().any(|(_, agent, _)| agent == "org/ns/a1"));
    }
}
