//! Records in a page, sorted by stream and offset and delta-encoded.
//!
//! ```text
//! stream − last stream │ offset − last offset, or the offset if the stream is new │
//! time − last time, folded │ length │ tag u8 │ the bytes          (numbers are varints)
//! ```
//!
//! The first record of a page is encoded relative to zeros, so every page can be decoded alone.
//! `before` in the page's header counts the payload bytes of the page's first stream on earlier
//! pages of the extent. It allows a binary search by size within a long stream.
//!
//! A piece of an extent in place has the records as they are in their block ([`crate::record`]); their
//! common time and `before` are in the index.

use std::ops::Range;

use super::page::{self, HEADER_SIZE, Head, Kind, PAGE_SIZE, Salt};
use super::{Damage, varint};
use crate::StreamId;
use crate::record::{self, RECORD_HEADER_SIZE, RecordKind};

/// Bytes of a record before its payload at most: four varints and the tag, or the header of a block's
/// record.
pub(super) const HEAD_SIZE_MAX: usize = 4 * varint::SIZE_MAX + 1;

/// A record that is being filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Stream of the record.
    pub stream: StreamId,
    /// Offset of the record in the stream.
    pub offset: u64,
    /// Time of the record's block, in milliseconds since 1970.
    pub time_ms: u64,
    /// The caller's tag.
    pub tag: u8,
    /// The payload.
    pub payload: &'a [u8],
}

#[derive(Clone, Copy, Debug, Default)]
struct PreviousRecord {
    stream: u64,
    offset: u64,
    time_ms: u64,
}

/// A page under construction, at the end of the output buffer, so that bytes are copied only once.
#[derive(Debug, Default)]
pub(super) struct Builder {
    /// Start of the page in the buffer, unless it is empty.
    start: usize,
    count: u32,
    before: u64,
    last: PreviousRecord,
    time_ms_max: u64,
}

impl Builder {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the start of the page in `out`. The page must not be empty.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Returns true if a record of `size` bytes should go on this page.
    pub(super) fn has_room(&self, out: &[u8], size: usize) -> bool {
        self.is_empty() || out.len() - self.start + size <= PAGE_SIZE
    }

    pub(super) fn time_ms_max(&self) -> u64 {
        self.time_ms_max
    }

    /// Adds a record, which must sort after the last one. `before` is used for the first record of
    /// a page. The page begins at the end of `out`; nothing else may be appended to `out` until it
    /// is sealed.
    pub(super) fn push(&mut self, out: &mut Vec<u8>, record: &RecordRef<'_>, before: u64) {
        if self.is_empty() {
            (self.start, self.before) = (out.len(), before);
            out.resize(self.start + HEADER_SIZE, 0);
        }
        let PreviousRecord {
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
        self.last = PreviousRecord {
            stream: record.stream.0,
            offset: record.offset,
            time_ms: record.time_ms,
        };
        self.time_ms_max = self.time_ms_max.max(record.time_ms);
        self.count += 1;
    }

    /// Finishes the page, to be written at `place` in the file.
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

/// A decoded record without its bytes; `payload` is their range in the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) stream: StreamId,
    pub(super) offset: u64,
    pub(super) time_ms: u64,
    pub(super) tag: u8,
    pub(super) payload: Range<usize>,
}

/// Iterates over the records of a checked page or piece.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    at: usize,
    left: u32,
    encoding: Encoding,
}

/// The encoding of records.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    /// That of a page: differences to the last record.
    Deltas(PreviousRecord),
    /// That of a block of the line, with this time.
    Block { time_ms: u64 },
}

impl Walk {
    /// Creates an iterator over a page.
    pub(super) fn new(head: Head) -> Walk {
        Walk {
            at: HEADER_SIZE,
            left: head.count,
            encoding: Encoding::Deltas(PreviousRecord::default()),
        }
    }

    /// Creates an iterator over a piece, whose records have this time.
    pub(super) fn of_piece(count: u32, time_ms: u64) -> Walk {
        Walk {
            at: 0,
            left: count,
            encoding: Encoding::Block { time_ms },
        }
    }

    /// Returns true after the last record.
    pub(super) fn is_at_end(&self) -> bool {
        self.left == 0
    }

    /// Returns where the next record begins in the page.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Decodes the next record. `page` must be the same on each call.
    pub(super) fn next(&mut self, page: &[u8]) -> Result<Option<Item>, Damage> {
        let window = page.get(self.at..).unwrap_or_default();
        self.next_in(window, page.len())
    }

    /// Decodes the next record of a page of `length` bytes. `window` has the bytes of the page from
    /// [`Walk::at`] on: [`HEAD_SIZE_MAX`] of them, unless the page ends before.
    pub(super) fn next_in(&mut self, window: &[u8], length: usize) -> Result<Option<Item>, Damage> {
        if self.left == 0 {
            return Ok(None);
        }
        let item = match self.encoding {
            Encoding::Deltas(last) => self.item(window, length, last),
            Encoding::Block { time_ms } => self.block_item(window, length, time_ms),
        };
        let item = item.ok_or(Damage("a record does not fit its page"))?;
        self.left -= 1;
        Ok(Some(item))
    }

    fn block_item(&mut self, window: &[u8], length: usize, time_ms: u64) -> Option<Item> {
        let header = record::decode_header(window, 0).ok()?;
        if header.kind != RecordKind::Data {
            return None;
        }
        let start = self.at + RECORD_HEADER_SIZE;
        let end = start
            .checked_add(header.length)
            .filter(|&end| end <= length)?;
        self.at = end;
        Some(Item {
            stream: header.stream,
            offset: header.offset,
            time_ms,
            tag: header.tag,
            payload: start..end,
        })
    }

    fn item(&mut self, window: &[u8], length: usize, last: PreviousRecord) -> Option<Item> {
        let mut rest = window;
        let step = varint::take(&mut rest)?;
        let base = if step == 0 { last.offset } else { 0 };
        let stream = last.stream.checked_add(step)?;
        let offset = base.checked_add(varint::take(&mut rest)?)?;
        let time = varint::unfold(varint::take(&mut rest)?);
        let time_ms = last.time_ms.wrapping_add(time as u64);
        let size = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (&tag, rest) = rest.split_first()?;
        let start = self.at + window.len() - rest.len();
        let end = start.checked_add(size).filter(|&end| end <= length)?;
        self.at = end;
        self.encoding = Encoding::Deltas(PreviousRecord {
            stream,
            offset,
            time_ms,
        });
        Some(Item {
            stream: StreamId(stream),
            offset,
            time_ms,
            tag,
            payload: start..end,
        })
    }
}
