//! `Missed`: counts messages without a subscriber by destination.
//!
//! Only the most recent names are kept, which bounds the memory for senders with ever new names.

use std::collections::{BTreeMap, HashMap};

use crate::name::{Name, Prefix};

/// Maximum number of names.
const NAMES_MAX: usize = 1024;

/// Counts of undeliverable messages by agent name.
#[derive(Debug, Default)]
pub struct Missed {
    counts: HashMap<Prefix, Count>,
    /// Names in order of their first message.
    order: BTreeMap<u64, Prefix>,
    next: u64,
}

#[derive(Debug)]
struct Count {
    agent: String,
    messages: u64,
}

impl Missed {
    /// Counts a message for a name without a subscriber.
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

    /// Iterates over the names and their message counts.
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
