//! Records within a page, sorted by stream and offset, each told by what differs from the last.
//!
//! ```text
//! stream − last stream │ offset − last offset, or the offset if the stream is new │
//! time − last time, folded │ length │ tag u8 │ the bytes          (numbers are varints)
//! ```
//!
//! The first record of a page differs from zeros, so every page can be read alone. `before` in the
//! page's header is how many bytes the extent holds, on earlier pages, of the page's first stream:
//! with it a place within a long stream is found by size without reading what lies before.

use std::ops::Range;

use super::page::{self, HEADER_SIZE, Head, Kind, PAGE_SIZE, Salt};
use super::{Damage, varint};
use crate::StreamId;

/// One record that is being filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Its place in the stream.
    pub offset: u64,
    /// When its block was made.
    pub time_ms: u64,
    /// The caller's.
    pub tag: u8,
    /// The bytes.
    pub payload: &'a [u8],
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    stream: u64,
    offset: u64,
    time_ms: u64,
}

/// A page that is being filled, at the end of what is to be written: the bytes are copied once.
#[derive(Debug, Default)]
pub(super) struct Builder {
    /// Where it begins there, if there is anything on it.
    start: usize,
    count: u32,
    before: u64,
    last: Last,
    time_ms_max: u64,
}

impl Builder {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where a page that is not empty begins in `out`.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Whether a record of that size still belongs here.
    pub(super) fn has_room(&self, out: &[u8], size: usize) -> bool {
        self.is_empty() || out.len() - self.start + size <= PAGE_SIZE
    }

    pub(super) fn time_ms_max(&self) -> u64 {
        self.time_ms_max
    }

    /// Adds a record that sorts behind the last one. `before` counts for the first of a page, which
    /// begins at the end of `out`; nothing else is added to that until it is sealed.
    pub(super) fn push(&mut self, out: &mut Vec<u8>, record: &RecordRef<'_>, before: u64) {
        if self.is_empty() {
            (self.start, self.before) = (out.len(), before);
            out.resize(self.start + HEADER_SIZE, 0);
        }
        let Last {
            stream,
            offset,
            time_ms,
        } = self.last;
        let step = record.stream.0 - stream;
        let base = if step == 0 { offset } else { 0 };
        varint::put(out, step);
        varint::put(out, record.offset - base);
        let time = varint::fold(record.time_ms.wrapping_sub(time_ms) as i64);
        varint::put(out, time);
        varint::put(out, record.payload.len() as u64);
        out.push(record.tag);
        out.extend_from_slice(record.payload);
        self.last = Last {
            stream: record.stream.0,
            offset: record.offset,
            time_ms: record.time_ms,
        };
        self.time_ms_max = self.time_ms_max.max(record.time_ms);
        self.count += 1;
    }

    /// Finishes the page, which will lie at `place` in the file; the next begins behind it.
    pub(super) fn seal(&mut self, out: &mut Vec<u8>, salt: Salt, place: u64) {
        let head = Head {
            kind: Kind::Records,
            count: self.count,
            before: self.before,
        };
        page::seal(out, self.start, head, salt, place);
        *self = Builder::default();
    }
}

/// A record on a page: everything but the bytes, and where those are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) stream: StreamId,
    pub(super) offset: u64,
    pub(super) time_ms: u64,
    pub(super) tag: u8,
    pub(super) payload: Range<usize>,
}

/// Goes over the records of a page that was checked.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    at: usize,
    left: u32,
    last: Last,
}

impl Walk {
    pub(super) fn new(head: Head) -> Walk {
        Walk {
            at: HEADER_SIZE,
            left: head.count,
            last: Last::default(),
        }
    }

    /// The next record of `page`, always the same one.
    pub(super) fn next(&mut self, page: &[u8]) -> Result<Option<Item>, Damage> {
        if self.left == 0 {
            return Ok(None);
        }
        let item = self
            .item(page)
            .ok_or(Damage("a record does not fit its page"))?;
        self.left -= 1;
        Ok(Some(item))
    }

    fn item(&mut self, page: &[u8]) -> Option<Item> {
        let mut rest = page.get(self.at..)?;
        let step = varint::take(&mut rest)?;
        let base = if step == 0 { self.last.offset } else { 0 };
        let stream = self.last.stream.checked_add(step)?;
        let offset = base.checked_add(varint::take(&mut rest)?)?;
        let time = varint::unfold(varint::take(&mut rest)?);
        let time_ms = self.last.time_ms.wrapping_add(time as u64);
        let length = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (&tag, rest) = rest.split_first()?;
        let start = page.len() - rest.len();
        let end = start.checked_add(length).filter(|&end| end <= page.len())?;
        self.at = end;
        self.last = Last {
            stream,
            offset,
            time_ms,
        };
        Some(Item {
            stream: StreamId(stream),
            offset,
            time_ms,
            tag,
            payload: start..end,
        })
    }
}
