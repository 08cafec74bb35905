//! `Routes`: route numbers of one connection.
//!
//! A number stands for a name, a method and a cast. Numbers are dense from 1. When all are used,
//! the least recently used number is bound to the new target. The numbers are valid for one
//! connection only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use model::limits::ROUTE_COUNT_MAX;
use wire::Cast;

/// Destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// Agent name; empty when the peer is a server.
    pub(crate) name: &'a str,
    /// Method; empty for plain messages.
    pub(crate) method: &'a str,
    pub(crate) cast: Cast,
}

/// A cached route for a caller that uses one target repeatedly: the route number in the low 16
/// bits, the number of its binding above. 0 matches no route.
pub(crate) type Hint = u64;

/// Counter of bindings over all connections.
static BINDINGS: AtomicU64 = AtomicU64::new(1);

/// Route number of a target; a new binding must be sent to the peer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindResult {
    Existing(u16),
    New(u16),
}

/// Route numbers of one connection.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The entry at `index` has the number `index + 1`.
    entries: Vec<Entry>,
    numbers: HashMap<Box<str>, u16>,
    /// Key of the last lookup; reuses its memory.
    key: String,
    /// Ends of the list in order of use; 0 when it is empty.
    newest: u16,
    oldest: u16,
    count_max: usize,
}

/// A bound route.
#[derive(Debug)]
struct Entry {
    /// Hint of this binding.
    hint: Hint,
    name: Box<str>,
    method: Box<str>,
    cast: Cast,
    /// True if the node said that every subscriber is full.
    is_full: bool,
    newer: u16,
    older: u16,
}

impl Default for Routes {
    fn default() -> Self {
        Self::with_count_max(ROUTE_COUNT_MAX as usize)
    }
}

impl Routes {
    fn with_count_max(count_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            numbers: HashMap::new(),
            key: String::new(),
            newest: 0,
            oldest: 0,
            count_max,
        }
    }

    /// Returns the number of `target`, with a new binding if necessary.
    pub(crate) fn bind(&mut self, target: Target<'_>) -> BindResult {
        // A caller that uses one target repeatedly needs no hashing.
        if self
            .entry(self.newest)
            .is_some_and(|entry| entry.is(target))
        {
            return BindResult::Existing(self.newest);
        }
        self.write_key(target);
        if let Some(&number) = self.numbers.get(self.key.as_str()) {
            self.unlink(number);
            self.link(number);
            return BindResult::Existing(number);
        }
        BindResult::New(self.insert(target))
    }

    /// Returns the number in `hint` if it still has the same binding.
    #[inline]
    pub(crate) fn recall(&mut self, hint: Hint) -> Option<u16> {
        let number = hint as u16;
        if self.entry(number)?.hint != hint {
            return None;
        }
        if number != self.newest {
            self.unlink(number);
            self.link(number);
        }
        Some(number)
    }

    /// Returns the hint of a bound route.
    pub(crate) fn hint(&self, number: u16) -> Hint {
        self.entry(number).map_or(0, |entry| entry.hint)
    }

    /// Sets whether all subscribers of a route are full. Returns true if the route was full and no
    /// longer is.
    pub(crate) fn set_full(&mut self, number: u16, is_full: bool) -> bool {
        match self.entry_mut(number) {
            Some(entry) => std::mem::replace(&mut entry.is_full, is_full) && !is_full,
            None => false,
        }
    }

    /// True if every subscriber of the target is full, by the node's last report.
    pub(crate) fn is_full(&mut self, target: Target<'_>) -> bool {
        if let Some(entry) = self.entry(self.newest)
            && entry.is(target)
        {
            return entry.is_full;
        }
        self.write_key(target);
        let number = self.numbers.get(self.key.as_str()).copied().unwrap_or(0);
        self.entry(number).is_some_and(|entry| entry.is_full)
    }

    fn insert(&mut self, target: Target<'_>) -> u16 {
        let mut entry = Entry {
            hint: 0,
            name: target.name.into(),
            method: target.method.into(),
            cast: target.cast,
            is_full: false,
            newer: 0,
            older: 0,
        };
        let binding = BINDINGS.fetch_add(1, Ordering::Relaxed);
        let hint_of = |number: u16| binding << 16 | Hint::from(number);
        let number = if self.entries.len() < self.count_max {
            let number = self.entries.len() as u16 + 1;
            entry.hint = hint_of(number);
            self.entries.push(entry);
            number
        } else {
            let number = self.oldest;
            entry.hint = hint_of(number);
            self.unlink(number);
            if let Some(slot) = self.entry_mut(number) {
                let given_up = std::mem::replace(slot, entry);
                let key = std::mem::take(&mut self.key);
                self.write_key(given_up.target());
                self.numbers.remove(self.key.as_str());
                self.key = key;
            }
            number
        };
        self.numbers.insert(self.key.as_str().into(), number);
        self.link(number);
        number
    }

    /// Writes the lookup key. Only the method, which comes last, may contain a zero byte.
    fn write_key(&mut self, target: Target<'_>) {
        self.key.clear();
        self.key.push(match target.cast {
            Cast::Any => 'a',
            Cast::All => '*',
            Cast::Stream => '=',
            Cast::Conversation => '@',
            Cast::Topic => '#',
        });
        self.key.push_str(target.name);
        self.key.push('\0');
        self.key.push_str(target.method);
    }

    fn link(&mut self, number: u16) {
        let before = self.newest;
        if let Some(entry) = self.entry_mut(number) {
            (entry.newer, entry.older) = (0, before);
        }
        match self.entry_mut(before) {
            Some(entry) => entry.newer = number,
            None => self.oldest = number,
        }
        self.newest = number;
    }

    fn unlink(&mut self, number: u16) {
        let Some(&Entry { newer, older, .. }) = self.entry(number) else {
            return;
        };
        match self.entry_mut(newer) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entry_mut(older) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn entry(&self, number: u16) -> Option<&Entry> {
        self.entries.get(usize::from(number).wrapping_sub(1))
    }

    fn entry_mut(&mut self, number: u16) -> Option<&mut Entry> {
        self.entries.get_mut(usize::from(number).wrapping_sub(1))
    }
}

/// Compares short texts word by word, because a call of `memcmp` costs more than the rest of a
/// lookup.
#[inline]
fn same(left: &str, right: &str) -> bool {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    while let (Some((l, left_rest)), Some((r, right_rest))) = (
        left.split_first_chunk::<8>(),
        right.split_first_chunk::<8>(),
    ) {
        if u64::from_ne_bytes(*l) != u64::from_ne_bytes(*r) {
            return false;
        }
        (left, right) = (left_rest, right_rest);
    }
    left.iter().zip(right).all(|(l, r)| l == r)
}

impl Entry {
    fn is(&self, target: Target<'_>) -> bool {
        self.cast == target.cast
            && same(&self.method, target.method)
            && same(&self.name, target.name)
    }

    fn target(&self) -> Target<'_> {
        Target {
            name: &self.name,
            method: &self.method,
            cast: self.cast,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(method: &str) -> Target<'_> {
        Target {
            name: "a/b/c",
            method,
            cast: Cast::Any,
        }
    }

    #[test]
    fn a_target_is_bound_once() {
        let mut routes = Routes::default();
        assert_eq!(routes.bind(target("x")), BindResult::New(1));
        assert_eq!(routes.bind(target("y")), BindResult::New(2));
        assert_eq!(routes.bind(target("x")), BindResult::Existing(1));
        assert_eq!(routes.bind(target("x")), BindResult::Existing(1));
        let to_all = Target {
            cast: Cast::All,
            ..target("x")
        };
        assert_eq!(routes.bind(to_all), BindResult::New(3));
    }

    #[test]
    fn the_least_recently_used_route_is_rebound() {
        let mut routes = Routes::with_count_max(3);
        for method in ["x", "y", "z"] {
            routes.bind(target(method));
        }
        routes.bind(target("x"));
        assert_eq!(routes.bind(target("new")), BindResult::New(2));
        assert_eq!(routes.bind(target("x")), BindResult::Existing(1));
        assert_eq!(routes.bind(target("y")), BindResult::New(3));
        assert_eq!(routes.bind(target("z")), BindResult::New(2));
    }

    #[test]
    fn a_route_hint_is_valid_until_the_number_is_rebound() {
        let mut routes = Routes::with_count_max(2);
        routes.bind(target("x"));
        let hint = routes.hint(1);
        routes.bind(target("y"));
        assert_eq!(routes.recall(hint), Some(1));
        assert_eq!(routes.bind(target("z")), BindResult::New(2));
        assert_eq!(routes.recall(hint), Some(1));
        routes.bind(target("z"));
        assert_eq!(routes.bind(target("new")), BindResult::New(1));
        assert_eq!(routes.recall(hint), None);
        assert_eq!(Routes::default().recall(hint), None);
        assert_eq!(routes.recall(0), None);
    }

    #[test]
    fn a_full_route_reopens_and_a_rebound_route_is_open() {
        let mut routes = Routes::with_count_max(1);
        routes.bind(target("x"));
        assert!(!routes.set_full(1, true));
        assert!(routes.is_full(target("x")));
        routes.bind(target("y"));
        assert!(!routes.is_full(target("y")) && !routes.is_full(target("x")));
        routes.set_full(1, true);
        assert!(routes.set_full(1, false));
        assert!(!routes.set_full(9, true));
    }

    #[test]
    fn every_route_number_can_be_bound() {
        let mut routes = Routes::default();
        for index in 0..ROUTE_COUNT_MAX {
            let bound = routes.bind(target(&index.to_string()));
            assert_eq!(bound, BindResult::New(index as u16 + 1));
        }
        assert_eq!(routes.bind(target("one more")), BindResult::New(1));
        assert_eq!(routes.bind(target("0")), BindResult::New(2));
    }
}
