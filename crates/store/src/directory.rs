//! The directory: the names of the journal's streams.
//!
//! Stream 0 of shard 0 has one record for each stream ever created, in order: the record at offset
//! *n* names stream *n* + 1. In memory, a name takes its bytes and about 24 more, as there may be a
//! million names.

use std::collections::HashMap;

use journal::{ShardId, StreamId};

/// The shard of the directory's own stream.
pub(crate) const SHARD: ShardId = ShardId(0);
/// The directory's own stream.
pub(crate) const STREAM: StreamId = StreamId(0);

/// The kind of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Unused stream number.
    Void = 0,
    /// The mailbox of an agent.
    Mailbox = 1,
    /// A raw stream of clients' records.
    Raw = 2,
    /// The messages of a conversation.
    Conversation = 3,
    /// The events of a namespace's conversations in one shard.
    Events = 4,
    /// The settings and dead letters of a webhook agent.
    Agent = 5,
    /// The records of quotas.
    Quotas = 6,
    /// The batches of a topic partition.
    Partition = 7,
    /// Other records of topics: the catalogue, groups, transactions.
    Topics = 8,
}

impl Kind {
    fn from_u8(number: u8) -> Option<Self> {
        const ALL: [Kind; 9] = [
            Kind::Void,
            Kind::Mailbox,
            Kind::Raw,
            Kind::Conversation,
            Kind::Events,
            Kind::Agent,
            Kind::Quotas,
            Kind::Partition,
            Kind::Topics,
        ];
        ALL.get(usize::from(number)).copied()
    }
}

/// The location of a stream in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The shard.
    pub shard: ShardId,
    /// The number.
    pub stream: StreamId,
}

/// Invalid bytes of a record of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed entry of the directory in a mailbox")]
pub struct Malformed;

/// The record of a stream; its kind is the record's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: Kind,
    pub(crate) shard: ShardId,
    pub(crate) name: &'a str,
}

impl<'a> Entry<'a> {
    /// `shard u16 | name`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.shard.0.to_le_bytes()[..], self.name.as_bytes()].concat()
    }

    pub(crate) fn decode(tag: u8, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (shard, name) = bytes.split_first_chunk().ok_or(Malformed)?;
        Ok(Self {
            kind: Kind::from_u8(tag).ok_or(Malformed)?,
            shard: ShardId(u16::from_le_bytes(*shard)),
            name: std::str::from_utf8(name).map_err(|_| Malformed)?,
        })
    }
}

/// The stream that contains the directory, for tools that read a journal without a node.
pub const DIRECTORY: (ShardId, StreamId) = (SHARD, STREAM);

/// A stream and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStream {
    /// The shard.
    pub shard: ShardId,
    /// The number.
    pub stream: StreamId,
    /// The kind: `mailbox`, `stream`, `conversation`, `events`, `agent`, `quotas`, `partition`,
    /// `topics`, or `unused`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
}

impl NamedStream {
    /// Decodes the directory record at `offset`; `None` if it is invalid.
    pub fn decode(offset: u64, tag: u8, bytes: &[u8]) -> Option<Self> {
        let Entry { kind, shard, name } = Entry::decode(tag, bytes).ok()?;
        Some(Self {
            shard,
            stream: StreamId(offset.checked_add(1)?),
            kind: match kind {
                Kind::Void => "unused",
                Kind::Mailbox => "mailbox",
                Kind::Raw => "stream",
                Kind::Conversation => "conversation",
                Kind::Events => "events",
                Kind::Agent => "agent",
                Kind::Quotas => "quotas",
                Kind::Partition => "partition",
                Kind::Topics => "topics",
            },
            name: name.to_owned(),
        })
    }
}

/// The shard of a new stream of that name: the same on every machine and for ever.
pub(crate) fn shard_of(name: &str, shard_count: u16) -> ShardId {
    let hash = model::fnv1a_64(name.bytes());
    ShardId((hash % u64::from(shard_count.max(1))) as u16)
}

/// Returns `org/namespace` of `org/namespace/x`.
pub(crate) fn namespace_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(namespace, _)| namespace)
}

#[derive(Clone, Copy, Debug)]
struct PackedEntry {
    /// The position of the name in `text`.
    at: u64,
    length: u16,
    shard: u16,
    kind: Kind,
}

/// The directory in memory.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The streams, by number, without the directory's own.
    entries: Vec<PackedEntry>,
    /// The names, concatenated.
    text: Vec<u8>,
    /// A hash table with open addressing: the stream's number, 0 for a free slot. Its size is a
    /// power of two, and at most three quarters of it are used.
    slots: Vec<u32>,
    /// Number of mailboxes, streams and conversations by namespace.
    namespaces: HashMap<Box<str>, usize>,
}

impl Directory {
    /// Returns the number of named streams.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds the next stream and returns its location.
    pub(crate) fn push(&mut self, entry: Entry<'_>) -> Location {
        let Entry { kind, shard, name } = entry;
        self.entries.push(PackedEntry {
            at: self.text.len() as u64,
            // Names are shorter than 64 KiB, as the length of their parts is bounded.
            length: name.len() as u16,
            shard: shard.0,
            kind,
        });
        self.text.extend_from_slice(name.as_bytes());
        if matches!(kind, Kind::Mailbox | Kind::Raw | Kind::Conversation) {
            let namespace = namespace_of(name);
            match self.namespaces.get_mut(namespace) {
                Some(count) => *count += 1,
                None => {
                    self.namespaces.insert(namespace.into(), 1);
                }
            }
        }
        if self.entries.len() * 4 > self.slots.len() * 3 {
            self.grow();
        } else {
            self.place(self.entries.len() as u32);
        }
        self.location(self.entries.len() as u32)
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
            match self.slots[slot] {
                0 => return None,
                number if self.get(number) == (kind, name) => return Some(self.location(number)),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Iterates over the streams of a kind, in the order of their creation.
    pub(crate) fn iter(&self, kind: Kind) -> impl Iterator<Item = (&str, Location)> + '_ {
        (1..=self.entries.len() as u32).filter_map(move |number| {
            let (found, name) = self.get(number);
            (found == kind).then(|| (name, self.location(number)))
        })
    }

    /// Returns the kind, the name and the location of a stream.
    pub(crate) fn named(&self, stream: StreamId) -> Option<(Kind, String, Location)> {
        let number = u32::try_from(stream.0).ok()?;
        (1..=self.len() as u32).contains(&number).then(|| {
            let (kind, name) = self.get(number);
            (kind, name.to_owned(), self.location(number))
        })
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

    fn get(&self, number: u32) -> (Kind, &str) {
        let entry = &self.entries[number as usize - 1];
        let at = entry.at as usize;
        let text = &self.text[at..at + usize::from(entry.length)];
        (entry.kind, std::str::from_utf8(text).unwrap_or_default())
    }

    fn location(&self, number: u32) -> Location {
        Location {
            shard: ShardId(self.entries[number as usize - 1].shard),
            stream: StreamId(u64::from(number)),
        }
    }

    fn first_slot(&self, kind: Kind, name: &str) -> usize {
        let bytes = std::iter::once(kind as u8).chain(name.bytes());
        model::fnv1a_64(bytes) as usize & (self.slots.len() - 1)
    }

    fn place(&mut self, number: u32) {
        let (kind, name) = self.get(number);
        let mut slot = self.first_slot(kind, name);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = number;
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        self.slots = vec![0; size];
        for number in 1..=self.entries.len() as u32 {
            self.place(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Kind, name: &str) -> Entry<'_> {
        Entry {
            kind,
            shard: shard_of(name, 3),
            name,
        }
    }

    #[test]
    fn directory_finds_exactly_the_names_it_contains() {
        let mut directory = Directory::default();
        assert_eq!(directory.find(Kind::Raw, "a/b/0"), None);
        let names: Vec<_> = (0..1000).map(|number| format!("a/b/{number}")).collect();
        for (index, name) in names.iter().enumerate() {
            let location = directory.push(entry(Kind::Raw, name));
            assert_eq!(location.stream, StreamId(index as u64 + 1));
            assert_eq!(location.shard, shard_of(name, 3));
        }
        let other = directory.push(entry(Kind::Mailbox, "a/b/7"));
        for (index, name) in names.iter().enumerate() {
            let found = directory.find(Kind::Raw, name).unwrap();
            assert_eq!(found.stream, StreamId(index as u64 + 1));
        }
        assert_eq!(directory.find(Kind::Mailbox, "a/b/7"), Some(other));
        assert_eq!(directory.find(Kind::Mailbox, "a/b/8"), None);
        assert_eq!(directory.find(Kind::Raw, "a/b/1000"), None);
        assert_eq!(
            directory.iter(Kind::Mailbox).collect::<Vec<_>>(),
            [("a/b/7", other)]
        );
        assert_eq!(
            (directory.iter(Kind::Raw).count(), directory.len()),
            (1000, 1001)
        );
    }

    #[test]
    fn directory_record_decodes_back_and_damaged_ones_are_refused() {
        let entry = entry(Kind::Mailbox, "a/b/c");
        let bytes = entry.encode();
        assert_eq!(bytes, b"\x02\0a/b/c");
        assert_eq!(Entry::decode(1, &bytes), Ok(entry));
        assert!(Entry::decode(9, &bytes).is_err());
        assert!(Entry::decode(1, &bytes[..1]).is_err());
        assert!(Entry::decode(1, b"\x02\0\xff").is_err());
    }

    /// Published: a name's shard is where its records are.
    #[test]
    fn the_shard_of_a_name_never_changes() {
        let shards = ["a/b/c", "acme/demo/worker", "default/default/x"];
        assert_eq!(shards.map(|name| shard_of(name, 8).0), [3, 6, 3]);
    }
}
