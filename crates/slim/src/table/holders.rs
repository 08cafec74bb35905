//! `Holders`: the connections that hold one name, each once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of holders up to which the list is searched linearly: most names have one holder, some
/// have a few.
const SCANNED_MAX: usize = 16;

/// Connections that hold one name.
#[derive(Debug)]
pub(super) struct Holders<P> {
    list: Vec<(u64, P)>,
    /// Index in the list by connection, for long lists.
    index: Option<HashMap<u64, u32>>,
    /// Start of the next round robin.
    cursor: AtomicU32,
}

impl<P> Default for Holders<P> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            index: None,
            cursor: AtomicU32::new(0),
        }
    }
}

impl<P> Holders<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a connection that is not in the list.
    pub(super) fn insert(&mut self, connection: u64, peer: P) {
        let at = self.list.len() as u32;
        self.list.push((connection, peer));
        match &mut self.index {
            Some(index) => drop(index.insert(connection, at)),
            None if self.list.len() > SCANNED_MAX => {
                let connections = self.list.iter().map(|(connection, _)| *connection);
                self.index = Some(connections.zip(0..).collect());
            }
            None => {}
        }
    }

    pub(super) fn remove(&mut self, connection: u64) {
        let at = match &mut self.index {
            Some(index) => index.remove(&connection).map(|at| at as usize),
            None => self.list.iter().position(|(other, _)| *other == connection),
        };
        let Some(at) = at else { return };
        self.list.swap_remove(at);
        if let (Some(index), Some((moved, _))) = (&mut self.index, self.list.get(at)) {
            index.insert(*moved, at as u32);
        }
    }

    /// Iterates over the connections.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(u64, P)> {
        self.list.iter()
    }

    /// Returns all connections without the sender, starting with the next in round robin.
    pub(super) fn in_turn(&self, sender: u64) -> Match<'_, P> {
        let start = match self.list.len() {
            0 | 1 => 0,
            count => self.cursor.fetch_add(1, Ordering::Relaxed) as usize % count,
        };
        let (tail, head) = self.list.split_at(start);
        Match { head, tail, sender }
    }

    /// Returns all connections without the sender.
    pub(super) fn everybody(&self, sender: u64) -> Match<'_, P> {
        let (head, tail) = (&self.list[..], &[][..]);
        Match { head, tail, sender }
    }
}

/// Connections that may receive a message, in order.
#[derive(Debug)]
pub struct Match<'a, P> {
    head: &'a [(u64, P)],
    tail: &'a [(u64, P)],
    sender: u64,
}

impl<P> Match<'_, P> {
    pub(super) fn nobody() -> Self {
        let (head, tail, sender) = (&[][..], &[][..], 0);
        Self { head, tail, sender }
    }
}

impl<'a, P> Iterator for Match<'a, P> {
    type Item = &'a P;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.head.is_empty() {
                self.head = std::mem::take(&mut self.tail);
            }
            let ((connection, peer), rest) = self.head.split_first()?;
            self.head = rest;
            if *connection != self.sender {
                return Some(peer);
            }
        }
    }
}
