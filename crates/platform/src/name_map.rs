//! [`NameMap`]: entries by name, in parts with a lock each.
//!
//! Every request looks an entry up. One lock for all names would make the processors wait for each
//! other, so the hash of a name determines its part, and requests for different names rarely meet.
//! The hash is the same in every run, so that a pass over all entries has the same order in every
//! run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of parts. With a 64th of the requests each, 64 processors rarely wait for one.
const PARTS: u64 = 64;

/// The entries of a part. No two parts share a cache line; processors fetch lines of 64 bytes in
/// pairs. A part is ordered by name: a client that chooses names cannot make it slow.
#[derive(Debug)]
#[repr(align(128))]
struct Part<T>(Mutex<BTreeMap<Arc<str>, Arc<T>>>);

/// Entries by name. A lock is held only while an entry is looked up, inserted or removed.
#[derive(Debug)]
pub struct NameMap<T> {
    parts: Box<[Part<T>]>,
}

impl<T> Default for NameMap<T> {
    fn default() -> Self {
        let part = |_| Part(Mutex::default());
        Self {
            parts: (0..PARTS).map(part).collect(),
        }
    }
}

impl<T> NameMap<T> {
    /// Returns the entry with that name.
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.part(name).lock().get(name).cloned()
    }

    /// Returns the entry with that name. If there is none, it is created under the lock of its part.
    pub fn get_or_insert_with(&self, name: &str, make: impl FnOnce(Arc<str>) -> T) -> Arc<T> {
        let mut part = self.part(name).lock();
        if let Some(entry) = part.get(name) {
            return entry.clone();
        }
        let name: Arc<str> = name.into();
        let entry = Arc::new(make(name.clone()));
        part.insert(name, entry.clone());
        entry
    }

    /// Removes an entry. Another one that has taken its place stays.
    pub fn remove(&self, name: &Arc<str>, entry: &Arc<T>) {
        if let Entry::Occupied(found) = self.part(name).lock().entry(name.clone())
            && Arc::ptr_eq(found.get(), entry)
        {
            found.remove();
        }
    }

    /// Returns all entries, in an order that depends only on their names. Entries that are inserted
    /// or removed meanwhile may be missing or included.
    pub fn all(&self) -> Vec<Arc<T>> {
        let mut all = Vec::with_capacity(self.len());
        for Part(part) in &self.parts {
            all.extend(part.lock().values().cloned());
        }
        all
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|Part(part)| part.lock().len()).sum()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|Part(part)| part.lock().is_empty())
    }

    fn part(&self, name: &str) -> &Mutex<BTreeMap<Arc<str>, Arc<T>>> {
        let index = model::fnv1a_64(name.bytes()) % PARTS;
        &self.parts[index as usize].0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    use super::*;

    fn filled(names: impl Iterator<Item = String>) -> NameMap<Arc<str>> {
        let map = NameMap::default();
        for name in names {
            map.get_or_insert_with(&name, |name| name);
        }
        map
    }

    #[test]
    fn entry_is_created_once_and_found_until_it_is_removed() {
        let map = NameMap::default();
        assert!(map.is_empty() && map.get("a/b/c").is_none());
        let first = map.get_or_insert_with("a/b/c", |name| (name, 1));
        let again = map.get_or_insert_with("a/b/c", |name| (name, 2));
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(map.get("a/b/c").unwrap().1, 1);
        map.remove(&first.0, &first);
        assert!(map.is_empty());
        let next = map.get_or_insert_with("a/b/c", |name| (name, 3));
        // A late removal of the first one leaves its successor alone.
        map.remove(&first.0, &first);
        assert!(Arc::ptr_eq(&map.get("a/b/c").unwrap(), &next));
        assert_eq!((map.len(), map.is_empty()), (1, false));
    }

    #[test]
    fn order_of_all_entries_does_not_depend_on_insertions() {
        let names = || (0..1_000).map(|number| format!("acme/default/c-{number}"));
        let (ascending, descending) = (filled(names()), filled(names().rev()));
        assert_eq!(ascending.all(), descending.all());
        let all: BTreeSet<_> = ascending.all().iter().map(|it| it.to_string()).collect();
        assert_eq!(all, names().collect());
        assert_eq!(ascending.len(), 1_000);
    }

    #[test]
    fn names_are_spread_over_all_parts() {
        for kind in ["acme/default/c-", "acme/team-7/user:", "o/n/0000"] {
            let map = filled((0..6_400).map(|number| format!("{kind}{number}")));
            let sizes = map.parts.iter().map(|Part(part)| part.lock().len());
            let largest = sizes.max().unwrap();
            assert!(largest < 2 * 100, "{kind}: {largest}");
        }
    }

    #[test]
    fn one_entry_is_created_by_threads_that_race() {
        const THREADS: usize = 8;
        let (map, barrier) = (NameMap::default(), Barrier::new(THREADS));
        let entries: BTreeSet<usize> = std::thread::scope(|scope| {
            let get = |number| {
                let (map, barrier) = (&map, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    *map.get_or_insert_with("a/b/c", |_| number)
                })
            };
            let threads: Vec<_> = (0..THREADS).map(get).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!((entries.len(), map.len()), (1, 1));
    }
}
