//! Iteration over the records of a batch.
//!
//! ```text
//! record  length varint | attributes i8 | timestamp delta varlong | offset delta varint
//!         | key length varint, -1 for none | key | value length varint, -1 for none | value
//!         | count varint × header
//! header  key length varint | key, UTF-8 | value length varint, -1 for none | value
//! ```

use crate::header::Header;
use crate::varint;

/// The size of the smallest record: six numbers and its attributes.
pub const RECORD_SIZE_MIN: usize = 7;

/// A record, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The offset in the partition.
    pub offset: i64,
    /// The timestamp, in milliseconds since 1970-01-01 UTC; the batch's attributes name its source.
    pub timestamp: i64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` deletes the key.
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

impl<'a> Record<'a> {
    /// Returns the headers, in their order.
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }
}

/// The bytes are not a record, or the number of records is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed record {index} of a batch")]
pub struct BadRecord {
    /// The index of the record, from 0.
    pub index: i32,
}

/// An iterator over the records of a batch; it ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: Header,
    rest: &'a [u8],
    index: i32,
}

/// A position between two records of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// The number of bytes of the payload after it.
    left: usize,
    /// The number of records before it.
    index: i32,
}

impl RecordPosition {
    /// Returns the position before the first record of a payload of this size.
    pub fn first(size: usize) -> Self {
        Self {
            left: size,
            index: 0,
        }
    }
}

impl<'a> Records<'a> {
    /// Returns the records of a batch with this header; `payload` is not compressed.
    pub fn new(header: &Header, payload: &'a [u8]) -> Self {
        Self {
            header: *header,
            rest: payload,
            index: 0,
        }
    }

    /// Returns the present position, for [`Records::resume`].
    pub fn place(&self) -> RecordPosition {
        RecordPosition {
            left: self.rest.len(),
            index: self.index,
        }
    }

    /// Continues at a position of the same header and payload.
    pub fn resume(header: &Header, payload: &'a [u8], place: RecordPosition) -> Self {
        let from = payload.len().saturating_sub(place.left);
        Self {
            header: *header,
            rest: &payload[from..],
            index: place.index,
        }
    }

    /// Checks that there are as many records as the header says, each with the offset of its
    /// position, as in a batch that was just produced.
    pub fn check(self) -> Result<(), BadRecord> {
        let base_offset = self.header.base_offset;
        for (index, record) in (0..).zip(self) {
            if record?.offset != base_offset.saturating_add(i64::from(index)) {
                return Err(BadRecord { index });
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Option<Record<'a>> {
        let length = usize::try_from(varint::int(&mut self.rest)?).ok()?;
        let (mut rest, behind) = self.rest.split_at_checked(length)?;
        self.rest = behind;
        let (_attributes, behind) = rest.split_first()?;
        rest = behind;
        let timestamp = varint::long(&mut rest)?;
        let offset = i64::from(varint::int(&mut rest)?);
        let in_batch = 0..=i64::from(self.header.last_offset_delta);
        if !in_batch.contains(&offset) {
            return None;
        }
        Some(Record {
            offset: self.header.base_offset.saturating_add(offset),
            timestamp: self.header.timestamp(timestamp),
            key: optional(&mut rest)?,
            value: optional(&mut rest)?,
            headers: Headers::read(rest)?,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, BadRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.header.count && self.rest.is_empty() {
            return None;
        }
        let index = self.index;
        let record = if index < self.header.count {
            self.read()
        } else {
            None
        };
        if record.is_none() {
            self.rest = &[];
            self.index = i32::MAX;
        } else {
            self.index += 1;
        }
        Some(record.ok_or(BadRecord { index }))
    }
}

/// The headers of a record: pairs of a key and an optional value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Headers<'a> {
    /// Checks that `bytes` are headers and nothing else.
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let left = u32::try_from(varint::int(&mut bytes)?).ok()?;
        let headers = Self { rest: bytes, left };
        let mut walk = headers;
        for _ in 0..left {
            walk.header()?;
        }
        walk.rest.is_empty().then_some(headers)
    }

    fn header(&mut self) -> Option<(&'a str, Option<&'a [u8]>)> {
        let key = std::str::from_utf8(optional(&mut self.rest)??).ok()?;
        Some((key, optional(&mut self.rest)?))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.header()
    }
}

/// Takes bytes that follow their length, or none.
fn optional<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = varint::int(rest)?;
    if length == -1 {
        return Some(None);
    }
    let (bytes, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = behind;
    Some(Some(bytes))
}

/// Appends a record.
pub(crate) fn put<'a>(
    out: &mut Vec<u8>,
    (offset_delta, timestamp_delta): (i32, i64),
    (key, value): (Option<&[u8]>, Option<&[u8]>),
    headers: impl Iterator<Item = (&'a str, Option<&'a [u8]>)> + Clone,
) {
    let (offset_delta, count) = (i64::from(offset_delta), headers.clone().count() as i64);
    let of_headers = headers
        .clone()
        .map(|(key, value)| optional_size(Some(key.as_bytes())) + optional_size(value))
        .sum::<usize>();
    let length = 1
        + varint::size(timestamp_delta)
        + varint::size(offset_delta)
        + optional_size(key)
        + optional_size(value)
        + varint::size(count)
        + of_headers;
    varint::put(out, length as i64);
    out.push(0);
    varint::put(out, timestamp_delta);
    varint::put(out, offset_delta);
    put_optional(out, key);
    put_optional(out, value);
    varint::put(out, count);
    for (key, value) in headers {
        put_optional(out, Some(key.as_bytes()));
        put_optional(out, value);
    }
}

fn optional_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::size(bytes.len() as i64) + bytes.len())
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    varint::put(out, bytes.map_or(-1, |bytes| bytes.len() as i64));
    out.extend_from_slice(bytes.unwrap_or_default());
}
