//! Top-k counting of names in bounded memory.
//!
//! When the table is full, the name with the smallest count is replaced and its count passes to the
//! newcomer: counts are too high by at most that much, and no frequent name is missing (Metwally,
//! Agrawal, El Abbadi, *Efficient Computation of Frequent and Top-k Elements in Data Streams*, ICDT
//! 2005).

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of names.
const NAMES_MAX: usize = 1_024;

/// The counters; see the module docs.
#[derive(Default)]
pub(super) struct Sketch {
    by_name: BTreeMap<Box<str>, u64>,
    by_count: BTreeSet<(u64, Box<str>)>,
}

impl Sketch {
    /// Counts a name.
    pub(super) fn count(&mut self, name: &str) {
        let before = match self.by_name.get(name) {
            Some(count) => *count,
            None if self.by_name.len() < NAMES_MAX => 0,
            None => match self.by_count.pop_first() {
                Some((count, smallest)) => {
                    self.by_name.remove(&smallest);
                    count
                }
                None => 0,
            },
        };
        let name: Box<str> = name.into();
        self.by_count.remove(&(before, name.clone()));
        self.by_count.insert((before + 1, name.clone()));
        self.by_name.insert(name, before + 1);
    }

    /// Returns the names with the highest counts.
    pub(super) fn top(&self, count: usize) -> Vec<(Box<str>, u64)> {
        let names = self.by_count.iter().rev().take(count);
        names.map(|(count, name)| (name.clone(), *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketch_finds_the_most_frequent_name_in_bounded_memory() {
        let mut sketch = Sketch::default();
        for round in 0..20_000_u32 {
            sketch.count(&format!("seldom-{round}"));
            if round % 4 == 0 {
                sketch.count("often");
            }
        }
        let top = sketch.top(1);
        assert_eq!(&*top[0].0, "often");
        assert!((5_000..5_100).contains(&top[0].1), "{top:?}");
        assert_eq!(sketch.by_name.len(), NAMES_MAX);
        assert_eq!(sketch.by_count.len(), NAMES_MAX);
    }
}
