//! The subscription table: finds the subscribers of a name in constant time.

mod undeliverable;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use model::Name;
use undeliverable::UndeliverableCounts;

/// Id of a client's connection, never reused in one run of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A subscription: an instance of an agent on a connection.
#[derive(Debug)]
pub struct Subscriber<P> {
    /// The subscriber's connection.
    pub connection: ConnectionId,
    /// `org/namespace/agent/instance`.
    pub name: Name,
    /// True if the sender's name is added to deliveries.
    pub with_source: bool,
    /// Data of the shell.
    pub peer: P,
    /// Number of messages delivered.
    pub delivered: AtomicU64,
    /// Number of messages dropped because the subscriber was full.
    pub dropped: AtomicU64,
}

/// A resolved name to send to.
///
/// The target is valid until [`Table::release`].
#[derive(Debug)]
pub struct Target {
    entry: u32,
    instance: Option<Name>,
}

/// A name's view: `org/namespace/agent`, its number of undeliverable messages, and its subscribers.
pub type NameView<'a, P> = (&'a Arc<str>, u64, &'a [Subscriber<P>]);

/// Result of a subscribe.
#[derive(Debug)]
pub struct SubscribeOutcome<P> {
    /// The earlier subscription of the same instance.
    pub replaced: Option<Subscriber<P>>,
}

struct Entry<P> {
    base: Arc<str>,
    subscribers: Vec<Subscriber<P>>,
    /// Full name to index in `subscribers`.
    by_name: HashMap<Name, u32>,
    /// Start of the next anycast round.
    cursor: AtomicU32,
    /// Number of targets that refer to this entry.
    targets: u32,
    /// Number of messages without a receiver.
    undeliverable: AtomicU64,
}

/// The subscription table. `P` is the shell's handle of a subscriber.
pub struct Table<P> {
    entries: Vec<Option<Entry<P>>>,
    free: Vec<u32>,
    by_base: HashMap<Arc<str>, u32>,
    subscriptions: usize,
    /// Counts of names without an entry.
    unused: UndeliverableCounts,
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_base: HashMap::new(),
            subscriptions: 0,
            unused: UndeliverableCounts::default(),
        }
    }
}

impl<P> Table<P> {
    /// Adds a subscription under its full name. It replaces a subscription of the same instance, on
    /// any connection.
    ///
    /// # Panics
    /// If the name has no instance: the shell must give every subscription one.
    pub fn subscribe(
        &mut self,
        name: Name,
        connection: ConnectionId,
        with_source: bool,
        peer: P,
    ) -> SubscribeOutcome<P> {
        assert!(name.instance().is_some(), "a subscription has an instance");
        let index = self.intern(name.base());
        let entry = entry_mut(&mut self.entries, index);
        let subscriber = Subscriber {
            connection,
            name: name.clone(),
            with_source,
            peer,
            delivered: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        };
        match entry.by_name.get(&name) {
            Some(found) => {
                let slot = &mut entry.subscribers[*found as usize];
                SubscribeOutcome {
                    replaced: Some(std::mem::replace(slot, subscriber)),
                }
            }
            None => {
                entry.by_name.insert(name, entry.subscribers.len() as u32);
                entry.subscribers.push(subscriber);
                self.subscriptions += 1;
                SubscribeOutcome { replaced: None }
            }
        }
    }

    /// Removes a subscription if it belongs to that connection.
    pub fn unsubscribe(&mut self, name: &Name, connection: ConnectionId) -> Option<Subscriber<P>> {
        let index = *self.by_base.get(name.base())?;
        let entry = entry_mut(&mut self.entries, index);
        let slot = *entry.by_name.get(name)?;
        if entry.subscribers[slot as usize].connection != connection {
            return None;
        }
        entry.by_name.remove(name);
        let removed = entry.subscribers.swap_remove(slot as usize);
        if let Some(moved) = entry.subscribers.get(slot as usize) {
            entry.by_name.insert(moved.name.clone(), slot);
        }
        self.subscriptions -= 1;
        self.forget_if_unused(index);
        Some(removed)
    }

    /// Resolves a name to send to. It may be without subscribers.
    pub fn target(&mut self, name: &Name) -> Target {
        let entry = self.intern(name.base());
        entry_mut(&mut self.entries, entry).targets += 1;
        Target {
            entry,
            instance: name.instance().map(|_| name.clone()),
        }
    }

    /// Releases a target.
    pub fn release(&mut self, target: Target) {
        entry_mut(&mut self.entries, target.entry).targets -= 1;
        self.forget_if_unused(target.entry);
    }

    /// Returns the candidates for an anycast, best first: round robin over the instances, or the
    /// named instance; never the sender itself. Use the first one that has room.
    pub fn any<'a>(&'a self, target: &'a Target, sender: ConnectionId) -> Match<'a, P> {
        let entry = self.entry(target.entry);
        let start = match entry.subscribers.len() {
            0 | 1 => 0,
            count => entry.cursor.fetch_add(1, Ordering::Relaxed) as usize % count,
        };
        self.matching(entry, target, sender, start)
    }

    /// Returns the receivers of a multicast: all subscribers but the sender, or the named instance.
    pub fn all<'a>(&'a self, target: &'a Target, sender: ConnectionId) -> Match<'a, P> {
        self.matching(self.entry(target.entry), target, sender, 0)
    }

    fn matching<'a>(
        &'a self,
        entry: &'a Entry<P>,
        target: &'a Target,
        sender: ConnectionId,
        start: usize,
    ) -> Match<'a, P> {
        let (head, tail) = match &target.instance {
            None => {
                let (tail, head) = entry.subscribers.split_at(start);
                (head, tail)
            }
            Some(name) => match entry.by_name.get(name) {
                Some(found) => (
                    std::slice::from_ref(&entry.subscribers[*found as usize]),
                    &[][..],
                ),
                None => (&[][..], &[][..]),
            },
        };
        Match {
            subscribers: head.iter().chain(tail),
            sender,
        }
    }

    /// Counts messages without a receiver.
    pub fn count_undeliverable(&self, target: &Target, count: u64) {
        self.entry(target.entry)
            .undeliverable
            .fetch_add(count, Ordering::Relaxed);
    }

    /// Returns `org/namespace/agent` of the target.
    pub fn base(&self, target: &Target) -> &Arc<str> {
        &self.entry(target.entry).base
    }

    /// Returns all names with their undeliverable counts and subscribers, sorted by name: the names
    /// in use, and the newest unused ones that had undeliverable messages.
    pub fn names(&self) -> Vec<NameView<'_, P>> {
        self.first_names(usize::MAX, |_| true)
    }

    /// Returns the first `limit` names of [`Table::names`] for which `is_wanted` is true, sorted by
    /// name. The others are not sorted.
    pub fn first_names(
        &self,
        limit: usize,
        is_wanted: impl FnMut(&NameView<'_, P>) -> bool,
    ) -> Vec<NameView<'_, P>> {
        let unused = self
            .unused
            .iter()
            .map(|(base, count)| (base, count, &[][..]));
        let used = self.entries.iter().flatten().map(Entry::view);
        let mut names: Vec<_> = used.chain(unused).filter(is_wanted).collect();
        if limit < names.len() {
            names.select_nth_unstable_by_key(limit, |(base, ..)| *base);
            names.truncate(limit);
        }
        names.sort_unstable_by_key(|(base, ..)| *base);
        names
    }

    /// Returns a name that is in use, with its undeliverable count and subscribers.
    pub fn name(&self, base: &str) -> Option<NameView<'_, P>> {
        let index = *self.by_base.get(base)?;
        self.entries[index as usize].as_ref().map(Entry::view)
    }

    /// Returns the number of subscriptions.
    pub fn subscription_count(&self) -> usize {
        self.subscriptions
    }

    fn intern(&mut self, base: &str) -> u32 {
        if let Some(index) = self.by_base.get(base) {
            return *index;
        }
        let base: Arc<str> = base.into();
        let entry = Entry {
            base: base.clone(),
            subscribers: Vec::new(),
            by_name: HashMap::new(),
            cursor: AtomicU32::new(0),
            targets: 0,
            undeliverable: AtomicU64::new(self.unused.take(&base)),
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = Some(entry);
                index
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() as u32 - 1
            }
        };
        self.by_base.insert(base, index);
        index
    }

    fn forget_if_unused(&mut self, index: u32) {
        let slot = &mut self.entries[index as usize];
        if let Some(entry) = slot.take_if(|e| e.subscribers.is_empty() && e.targets == 0) {
            self.by_base.remove(&entry.base);
            self.free.push(index);
            match entry.undeliverable.into_inner() {
                0 => {}
                count => self.unused.store(entry.base, count),
            }
        }
    }

    fn entry(&self, index: u32) -> &Entry<P> {
        self.entries[index as usize]
            .as_ref()
            .expect("a held target keeps its entry")
    }
}

fn entry_mut<P>(entries: &mut [Option<Entry<P>>], index: u32) -> &mut Entry<P> {
    entries[index as usize]
        .as_mut()
        .expect("an indexed name keeps its entry")
}

impl<P> Entry<P> {
    fn view(&self) -> NameView<'_, P> {
        (
            &self.base,
            self.undeliverable.load(Ordering::Relaxed),
            &self.subscribers,
        )
    }
}

/// The candidates for a message, in order.
pub struct Match<'a, P> {
    subscribers:
        std::iter::Chain<std::slice::Iter<'a, Subscriber<P>>, std::slice::Iter<'a, Subscriber<P>>>,
    sender: ConnectionId,
}

impl<'a, P> Iterator for Match<'a, P> {
    type Item = &'a Subscriber<P>;

    fn next(&mut self) -> Option<Self::Item> {
        self.subscribers
            .find(|subscriber| subscriber.connection != self.sender)
    }
}

#[cfg(test)]
mod tests;
