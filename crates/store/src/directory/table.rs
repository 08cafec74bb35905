//! The directory of all shards in memory.
//!
//! A name takes its bytes and about 20 more, as there may be a million names.

use std::collections::HashMap;

use journal::{ShardId, StreamId};

use super::entry::Entry;
use super::shard::ShardEntries;
use super::{Kind, Location, namespace_of};

/// The names of all shards.
#[derive(Debug)]
pub(crate) struct Directory {
    shards: Vec<ShardEntries>,
    /// A hash table with open addressing: the code of an entry, 0 for a free slot. Its size is a
    /// power of two, and at most three quarters of it are used.
    slots: Vec<u32>,
    /// Number of named streams.
    named: usize,
    /// Number of mailboxes, streams and conversations by namespace.
    namespaces: HashMap<Box<str>, usize>,
}

/// The position of an entry.
#[derive(Clone, Copy, Debug)]
struct EntryIndex {
    shard: usize,
    index: usize,
}

impl Directory {
    /// Creates an empty directory.
    pub(crate) fn new(shard_count: u16) -> Self {
        Self {
            shards: vec![ShardEntries::default(); usize::from(shard_count.max(1))],
            slots: Vec::new(),
            named: 0,
            namespaces: HashMap::new(),
        }
    }

    /// Returns the number of named streams.
    pub(crate) fn len(&self) -> usize {
        self.named
    }

    /// Returns the highest number of any stream; 0 if there is none.
    pub(crate) fn number_max(&self) -> u64 {
        let last = self.shards.iter().map(ShardEntries::last_number);
        u64::from(last.max().unwrap_or_default())
    }

    /// Returns the offset after a shard's last entry.
    pub(crate) fn end(&self, shard: ShardId) -> u64 {
        self.shards[usize::from(shard.0)].end()
    }

    /// Returns the number of the shard's next stream.
    pub(crate) fn next_number(&self, shard: ShardId) -> StreamId {
        let count = self.shards.len() as u64;
        let last = self.shards[usize::from(shard.0)].last_number();
        let lowest = u64::from(last.max(self.carried_over_max())) + 1;
        let missing = (u64::from(shard.0) + count - lowest % count) % count;
        StreamId(lowest + missing)
    }

    /// Returns the highest number that was carried over from format 1; 0 if there is none.
    fn carried_over_max(&self) -> u32 {
        let shards = self.shards.iter().map(ShardEntries::carried_over_max);
        shards.max().unwrap_or_default()
    }

    /// Returns whether a number was carried over from format 1.
    pub(crate) fn is_carried_over(&self, stream: StreamId) -> bool {
        stream.0 <= u64::from(self.carried_over_max())
    }

    /// Returns whether an entry can be the next one of a shard: its number is below 2^32 and above
    /// those of the shard's other streams, and there is room for it.
    pub(crate) fn fits(&self, shard: ShardId, entry: Entry<'_>) -> bool {
        let shard = usize::from(shard.0);
        let entries = &self.shards[shard];
        let index = entries.len();
        entries.fits(entry) && self.encode(EntryIndex { shard, index }) <= u32::MAX as usize
    }

    /// Adds the next entry of a shard. It must fit.
    pub(crate) fn push(&mut self, shard: ShardId, entry: Entry<'_>) {
        debug_assert!(self.fits(shard, entry), "an entry that does not fit");
        let shard = usize::from(shard.0);
        let entries = &mut self.shards[shard];
        entries.push(entry);
        let index = entries.len() - 1;
        self.name(EntryIndex { shard, index });
    }

    /// Replaces the entries of a shard by those that its stream has. Entries that are there already
    /// cost a comparison.
    pub(crate) fn replace(&mut self, shard: ShardId, entries: ShardEntries) {
        let shard = usize::from(shard.0);
        let known = &self.shards[shard];
        let first_new = known.len();
        let is_longer = entries.begins_with(known);
        self.shards[shard] = entries;
        if is_longer {
            for index in first_new..self.shards[shard].len() {
                self.name(EntryIndex { shard, index });
            }
        } else {
            self.rebuild();
        }
    }

    /// Counts the names and builds the hash table anew.
    fn rebuild(&mut self) {
        (self.named, self.slots) = (0, Vec::new());
        self.namespaces.clear();
        for shard in 0..self.shards.len() {
            for index in 0..self.shards[shard].len() {
                self.name(EntryIndex { shard, index });
            }
        }
    }

    /// Makes an entry known by its name, if it has one.
    fn name(&mut self, at: EntryIndex) {
        let (kind, name) = self.shards[at.shard].get(at.index);
        if kind == Kind::Void {
            return;
        }
        if matches!(kind, Kind::Mailbox | Kind::Raw | Kind::Conversation) {
            let namespace = namespace_of(name);
            match self.namespaces.get_mut(namespace) {
                Some(count) => *count += 1,
                None => {
                    self.namespaces.insert(namespace.into(), 1);
                }
            }
        }
        self.named += 1;
        if self.named * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.place(at);
    }

    /// Returns the number of mailboxes, streams and conversations in the namespace of a name.
    pub(crate) fn namespace_name_count(&self, name: &str) -> usize {
        let count = self.namespaces.get(namespace_of(name));
        count.copied().unwrap_or(0)
    }

    /// Returns the stream with that kind and name.
    pub(crate) fn find(&self, kind: Kind, name: &str) -> Option<Location> {
        if self.slots.is_empty() {
            return None;
        }
        let mut slot = self.first_slot(kind, name);
        loop {
            let at = self.decode(self.slots[slot])?;
            if self.entry(at) == (kind, name) {
                return Some(self.location(at));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Iterates over the streams of a kind: by shard, and in the order of their creation within a
    /// shard.
    pub(crate) fn iter(&self, kind: Kind) -> impl Iterator<Item = (&str, Location)> + '_ {
        self.indexes().filter_map(move |at| {
            let (found, name) = self.entry(at);
            (found == kind).then(|| (name, self.location(at)))
        })
    }

    /// Returns the kind, the name and the location of a stream.
    pub(crate) fn named(&self, stream: StreamId) -> Option<(Kind, String, Location)> {
        let number = u32::try_from(stream.0).ok()?;
        let count = self.shards.len();
        // The shard of a number of format 1 is not known from the number.
        let likely = number as usize % count;
        let mut shards = (0..count).map(|distance| (likely + distance) % count);
        let at = shards.find_map(|shard| {
            let index = self.shards[shard].index_of(number)?;
            Some(EntryIndex { shard, index })
        })?;
        let (kind, name) = self.entry(at);
        Some((kind, name.to_owned(), self.location(at)))
    }

    /// Returns the offset of a stream's entry in the directory of its shard.
    pub(crate) fn entry_offset(&self, at: Location) -> Option<u64> {
        let entries = &self.shards[usize::from(at.shard.0)];
        let index = entries.index_of(u32::try_from(at.stream.0).ok()?)?;
        Some(entries.start() + index as u64)
    }

    /// Passes the named streams of a shard with an entry in a range of offsets to `take`.
    pub(crate) fn each(
        &self,
        shard: ShardId,
        offsets: std::ops::Range<u64>,
        take: &mut dyn FnMut(Kind, &str, Location),
    ) {
        let shard = usize::from(shard.0);
        let entries = &self.shards[shard];
        let index = |offset: u64| offset.saturating_sub(entries.start()) as usize;
        for index in index(offsets.start)..index(offsets.end).min(entries.len()) {
            let at = EntryIndex { shard, index };
            let (kind, name) = self.entry(at);
            if kind != Kind::Void {
                take(kind, name, self.location(at));
            }
        }
    }

    /// Returns the names of streams of a kind with that prefix after the name `after`, in order.
    pub(crate) fn list(&self, kind: Kind, prefix: &str, after: &str, limit: usize) -> Vec<String> {
        let mut names: Vec<_> = self
            .iter(kind)
            .map(|(name, _)| name)
            .filter(|name| name.starts_with(prefix) && *name > after)
            .collect();
        names.sort_unstable();
        names.truncate(limit);
        names.into_iter().map(str::to_owned).collect()
    }

    fn indexes(&self) -> impl Iterator<Item = EntryIndex> + '_ {
        let shards = self.shards.iter().enumerate();
        shards.flat_map(|(shard, it)| (0..it.len()).map(move |index| EntryIndex { shard, index }))
    }

    fn entry(&self, at: EntryIndex) -> (Kind, &str) {
        self.shards[at.shard].get(at.index)
    }

    fn location(&self, at: EntryIndex) -> Location {
        let number = self.shards[at.shard].number(at.index);
        Location {
            shard: ShardId(at.shard as u16),
            stream: StreamId(u64::from(number)),
        }
    }

    /// Returns the code of an entry in `slots`, from 1.
    fn encode(&self, at: EntryIndex) -> usize {
        at.index * self.shards.len() + at.shard + 1
    }

    fn decode(&self, code: u32) -> Option<EntryIndex> {
        let position = code.checked_sub(1)? as usize;
        Some(EntryIndex {
            shard: position % self.shards.len(),
            index: position / self.shards.len(),
        })
    }

    fn first_slot(&self, kind: Kind, name: &str) -> usize {
        let bytes = std::iter::once(kind as u8).chain(name.bytes());
        model::fnv1a_64(bytes) as usize & (self.slots.len() - 1)
    }

    fn place(&mut self, at: EntryIndex) {
        let (kind, name) = self.entry(at);
        let mut slot = self.first_slot(kind, name);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = self.encode(at) as u32;
    }

    /// Doubles the hash table.
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        for code in old {
            if let Some(at) = self.decode(code) {
                self.place(at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
