//! The directory of one shard in memory.

use journal::StreamId;

use super::Kind;
use super::entry::{CARRIED_OVER, Entry};

/// The entries of a shard, in the order of their offsets and of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardEntries {
    /// The offset of the first entry in the stream of the directory; the others follow it.
    start: u64,
    entries: Vec<PackedEntry>,
    /// The names, concatenated.
    text: Vec<u8>,
    /// The highest number that was carried over from format 1.
    carried_over_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedEntry {
    /// The position of the name in `text`.
    at: u32,
    number: u32,
    length: u16,
    kind: Kind,
}

impl ShardEntries {
    /// Creates a directory without entries, of which the first will have that offset.
    pub(crate) fn starting_at(start: u64) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// Returns the offset of the first entry.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the offset after the last entry.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// Returns the number of entries, unused numbers included.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the highest number; 0 if there is none.
    pub(crate) fn last_number(&self) -> u32 {
        self.entries.last().map_or(0, |it| it.number)
    }

    /// Returns the highest number that was carried over from format 1; 0 if there is none.
    pub(crate) fn carried_over_max(&self) -> u32 {
        self.carried_over_max
    }

    /// Returns whether an entry can be the next one: its number is below 2^32 and above the others,
    /// and there is room for its name.
    pub(crate) fn fits(&self, entry: Entry<'_>) -> bool {
        let lowest = match entry.name {
            // It may be the number of the last entry.
            CARRIED_OVER => u64::from(self.last_number()),
            _ => u64::from(self.last_number()) + 1,
        };
        let has_room = self.text.len() + entry.name.len() <= u32::MAX as usize;
        (lowest..=u64::from(u32::MAX)).contains(&entry.number.0)
            && has_room
            && entry.name.len() <= usize::from(u16::MAX)
    }

    /// Adds the next entry. It must fit.
    pub(crate) fn push(&mut self, Entry { kind, number, name }: Entry<'_>) {
        let StreamId(number) = number;
        let number = number as u32;
        self.entries.push(PackedEntry {
            at: self.text.len() as u32,
            number,
            length: name.len() as u16,
            kind,
        });
        self.text.extend_from_slice(name.as_bytes());
        if kind == Kind::Void && name == CARRIED_OVER {
            self.carried_over_max = self.carried_over_max.max(number);
        }
    }

    /// Adds entries without a name for records that are lost, up to an offset.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        let lost = PackedEntry {
            at: self.text.len() as u32,
            number: self.last_number(),
            length: 0,
            kind: Kind::Void,
        };
        while self.end() < offset {
            self.entries.push(lost);
        }
    }

    /// Returns whether these entries are those of `others`, followed by any.
    pub(crate) fn begins_with(&self, others: &Self) -> bool {
        let start = if others.entries.is_empty() {
            self.start
        } else {
            others.start
        };
        self.start == start
            && self.entries.starts_with(&others.entries)
            && self.text.starts_with(&others.text)
    }

    /// Returns the kind and the name of an entry, by its index from 0.
    pub(crate) fn get(&self, index: usize) -> (Kind, &str) {
        let entry = &self.entries[index];
        let begin = entry.at as usize;
        let text = &self.text[begin..begin + usize::from(entry.length)];
        (entry.kind, std::str::from_utf8(text).unwrap_or_default())
    }

    /// Returns the number of an entry, by its index from 0.
    pub(crate) fn number(&self, index: usize) -> u32 {
        self.entries[index].number
    }

    /// Returns the index of the stream with a number.
    pub(crate) fn index_of(&self, number: u32) -> Option<usize> {
        let index = self.entries.partition_point(|it| it.number < number);
        let found = self.entries.get(index)?;
        (found.number == number && found.kind != Kind::Void).then_some(index)
    }
}
