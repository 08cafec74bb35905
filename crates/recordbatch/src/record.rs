//! Walking the records of a batch.
//!
//! ```text
//! record  length varint | attributes i8 | timestamp delta varlong | offset delta varint
//!         | key length varint, -1 for none | key | value length varint, -1 for none | value
//!         | count varint × header
//! header  key length varint | key, UTF-8 | value length varint, -1 for none | value
//! ```

use crate::header::Header;
use crate::varint;

/// Bytes of the smallest record: six numbers and its attributes.
pub const RECORD_SIZE_MIN: usize = 7;

/// A record where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the partition.
    pub offset: i64,
    /// In milliseconds since 1970-01-01 UTC; whose time it is the batch says.
    pub timestamp: i64,
    /// What it is about.
    pub key: Option<&'a [u8]>,
    /// What it says; `None` for a deletion of its key.
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

impl<'a> Record<'a> {
    /// Its headers, in their order.
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }
}

/// Bytes that are no record, or not as many records as there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed record {index} of a batch")]
pub struct BadRecord {
    /// Which one, from 0.
    pub index: i32,
}

/// The records of a batch; ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: Header,
    rest: &'a [u8],
    index: i32,
}

/// A place between two records of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes of the payload behind it.
    left: usize,
    /// Records before it.
    index: i32,
}

impl Place {
    /// Before the first record of a payload of so many bytes.
    pub fn first(size: usize) -> Self {
        Self {
            left: size,
            index: 0,
        }
    }
}

impl<'a> Records<'a> {
    /// The records of a batch with that header, which are not compressed any more.
    pub fn new(header: &Header, payload: &'a [u8]) -> Self {
        Self {
            header: *header,
            rest: payload,
            index: 0,
        }
    }

    /// How far it has come, to go on from there some other time.
    pub fn place(&self) -> Place {
        Place {
            left: self.rest.len(),
            index: self.index,
        }
    }

    /// The records from that place on, of the header and the payload of which it was one.
    pub fn resume(header: &Header, payload: &'a [u8], place: Place) -> Self {
        let from = payload.len().saturating_sub(place.left);
        Self {
            header: *header,
            rest: &payload[from..],
            index: place.index,
        }
    }

    /// Whether there are as many records as the header says, and each has the offset of its place
    /// as in a batch that was just produced.
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

/// The headers of a record: each a key and perhaps a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Headers<'a> {
    /// All of `bytes`; each header is looked at once.
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

/// Bytes behind their length, or none.
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
