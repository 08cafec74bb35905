//! The stream table of an extent: the state of each of its streams when it was written.
//!
//! ```text
//! stream − last stream │ next │ next − start │ start − erased │ records │
//! and if there are records:  next − first │ bytes                 (numbers are varints)
//! ```
//!
//! An entry is a lower bound: the stream had *at least* this start and this next offset. The
//! maximum over all extents of a shard is the stream's state at the end of the filed line. An entry
//! outlives the stream's records, so no offset is ever reused.

use super::page::{self, HEADER_SIZE, Head, Kind, PAGE_SIZE, Salt};
use super::{Damage, varint};
use crate::StreamId;

/// State of a stream, and what the extent holds of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Id of the stream.
    pub stream: StreamId,
    /// Start of the stream for readers.
    pub start: u64,
    /// Bytes of records below this offset must leave the disk.
    pub erased: u64,
    /// The offset after the last one that was assigned.
    pub next: u64,
    /// Smallest offset in the extent; `next` if there is no record.
    pub first: u64,
    /// Number of records in the extent.
    pub records: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl Entry {
    /// Creates an entry of a stream without any state.
    pub fn new(stream: StreamId) -> Entry {
        Entry {
            stream,
            ..Entry::default()
        }
    }

    /// Merges the stream's state from another entry, without the counts of its extent.
    pub fn learn(&mut self, other: &Entry) {
        self.start = self.start.max(other.start);
        self.erased = self.erased.max(other.erased);
        self.next = self.next.max(other.next).max(self.start);
    }

    /// Estimates the dead bytes if the stream starts at `start`, assuming records of equal size.
    pub fn dead_bytes(&self, start: u64) -> u64 {
        if start <= self.first {
            return 0;
        }
        let (dead, all) = (start.min(self.next) - self.first, self.next - self.first);
        (u128::from(self.bytes) * u128::from(dead) / u128::from(all.max(1))) as u64
    }

    /// Returns true if the extent has records below `erased`.
    pub fn holds_below(&self, erased: u64) -> bool {
        self.records > 0 && self.first < erased
    }
}

/// The pages of a stream table under construction, held until the records are written.
#[derive(Debug, Default)]
pub(super) struct Builder {
    bodies: Vec<Body>,
    last: u64,
}

#[derive(Debug)]
struct Body {
    first: StreamId,
    count: u32,
    bytes: Vec<u8>,
}

impl Builder {
    /// Adds a stream, which must sort after the last one.
    pub(super) fn push(&mut self, entry: &Entry) {
        if self
            .bodies
            .last()
            .is_none_or(|body| body.bytes.len() >= PAGE_SIZE)
        {
            let mut bytes = Vec::with_capacity(PAGE_SIZE + 128);
            bytes.resize(HEADER_SIZE, 0);
            self.bodies.push(Body {
                first: entry.stream,
                count: 0,
                bytes,
            });
            self.last = 0;
        }
        let Some(body) = self.bodies.last_mut() else {
            return;
        };
        let out = &mut body.bytes;
        varint::put(out, entry.stream.0 - self.last);
        varint::put(out, entry.next);
        varint::put(out, entry.next - entry.start);
        varint::put(out, entry.start - entry.erased);
        varint::put(out, entry.records);
        if entry.records > 0 {
            varint::put(out, entry.next - entry.first);
            varint::put(out, entry.bytes);
        }
        body.count += 1;
        self.last = entry.stream.0;
    }

    /// Finishes the pages and returns each with its first stream. The first page will be at
    /// `place`.
    pub(super) fn seal(
        self,
        salt: Salt,
        mut place: u64,
    ) -> impl Iterator<Item = (StreamId, Vec<u8>)> {
        self.bodies.into_iter().map(move |mut body| {
            let head = Head {
                kind: Kind::Streams,
                count: body.count,
                before: 0,
            };
            page::seal(&mut body.bytes, 0, head, salt, place);
            place += body.bytes.len() as u64;
            (body.first, body.bytes)
        })
    }
}

/// Iterates over the entries of a checked page.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    at: usize,
    left: u32,
    last: u64,
}

impl Walk {
    pub(super) fn new(head: Head) -> Walk {
        Walk {
            at: HEADER_SIZE,
            left: head.count,
            last: 0,
        }
    }

    /// Decodes the next entry. `page` must be the same on each call.
    pub(super) fn next(&mut self, page: &[u8]) -> Result<Option<Entry>, Damage> {
        if self.left == 0 {
            return Ok(None);
        }
        let entry = self
            .entry(page)
            .ok_or(Damage("a stream's entry does not fit its page"))?;
        self.left -= 1;
        Ok(Some(entry))
    }

    fn entry(&mut self, page: &[u8]) -> Option<Entry> {
        let mut rest = page.get(self.at..)?;
        let stream = self.last.checked_add(varint::take(&mut rest)?)?;
        let next = varint::take(&mut rest)?;
        let start = next.checked_sub(varint::take(&mut rest)?)?;
        let erased = start.checked_sub(varint::take(&mut rest)?)?;
        let records = varint::take(&mut rest)?;
        let (first, bytes) = match records {
            0 => (next, 0),
            _ => (
                next.checked_sub(varint::take(&mut rest)?)?,
                varint::take(&mut rest)?,
            ),
        };
        self.at = page.len() - rest.len();
        self.last = stream;
        Some(Entry {
            stream: StreamId(stream),
            start,
            erased,
            next,
            first,
            records,
            bytes,
        })
    }
}
