//! Ids of recently admitted takes, for idempotent retries: a retry gets the original answer and
//! takes nothing.

use std::collections::{BTreeMap, VecDeque};

/// The newest ids, each with its stored answer; bounded in number and in time.
#[derive(Debug)]
pub struct Recent<V> {
    known: BTreeMap<Box<str>, V>,
    /// Ids with the time at which each is forgotten, oldest first.
    order: VecDeque<(u64, Box<str>)>,
    count_max: usize,
    window_ns: u64,
}

impl<V> Recent<V> {
    /// Creates a set of up to `count_max` ids. Each is kept for at least `window_ns` unless more
    /// ids arrive.
    pub fn new(count_max: usize, window_ns: u64) -> Self {
        Self {
            known: BTreeMap::new(),
            order: VecDeque::new(),
            count_max: count_max.max(1),
            window_ns,
        }
    }

    /// Returns the value stored for an id.
    pub fn get(&self, id: &str) -> Option<&V> {
        self.known.get(id)
    }

    /// Iterates over all ids, oldest first, with the time at which each is forgotten.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V, u64)> {
        let order = self.order.iter();
        order.filter_map(|(until_ns, id)| Some((&**id, self.known.get(id)?, *until_ns)))
    }

    /// Stores a new id for the window, and at least until `until_ns`.
    pub fn insert(&mut self, id: &str, value: V, until_ns: u64, now_ns: u64) {
        self.forget(now_ns);
        if self.known.insert(id.into(), value).is_none() {
            let until_ns = until_ns.max(now_ns.saturating_add(self.window_ns));
            self.order.push_back((until_ns, id.into()));
        }
    }

    fn forget(&mut self, now_ns: u64) {
        while let Some((until_ns, id)) = self.order.front() {
            if *until_ns > now_ns && self.order.len() < self.count_max {
                break;
            }
            self.known.remove(id);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_forgotten_by_age_or_count() {
        let mut recent = Recent::new(3, 100);
        for (now, id) in [(0, "a"), (10, "b"), (20, "c")] {
            recent.insert(id, now, 0, now);
        }
        assert_eq!(recent.get("a"), Some(&0));
        recent.insert("d", 30, 0, 30);
        assert_eq!((recent.get("a"), recent.get("b")), (None, Some(&10)));
        recent.insert("e", 110, 500, 111);
        assert_eq!((recent.get("b"), recent.get("c")), (None, Some(&20)));
    }
}
