//! Records of topics, as they are appended and read.
//!
//! They are encoded like records of a stream: in the body of an APPEND, and in the answers to READ
//! and FOLLOW. Offsets are those of a partition, and may have gaps.

use crate::cursor::{Cursor, Malformed, put_sized, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

const KEY: u8 = 1;
const VALUE: u8 = 2;
const HEADERS: u8 = 4;
const PARTITION: u8 = 8;

/// Length that stands for a missing value.
const NOTHING: u32 = u32::MAX;

/// A record of a topic: a record of an APPEND, or of an EXTRACT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicRecord<'a> {
    /// Partition to append to, if neither the route nor the key determines it. Always `None` in
    /// answers.
    pub partition: Option<u32>,
    /// Key of the record.
    pub key: Option<&'a [u8]>,
    /// Headers, in order.
    pub headers: TopicHeaders<'a>,
    /// Value; `None` deletes the key (a tombstone).
    pub value: Option<&'a [u8]>,
}

/// Headers of a record: names with optional values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicHeaders<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> TopicRecord<'a> {
    /// Decodes a record.
    pub fn decode(record: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(record, "record of a topic");
        let flags = cursor.u8()?;
        if flags & !(KEY | VALUE | HEADERS | PARTITION) != 0 {
            return Err(cursor.malformed());
        }
        let has = |flag| flags & flag != 0;
        let partition = has(PARTITION).then(|| cursor.u32()).transpose()?;
        let key = has(KEY).then(|| bytes32(&mut cursor)).transpose()?;
        let headers = match has(HEADERS) {
            true => TopicHeaders::read(&mut cursor)?,
            false => TopicHeaders::default(),
        };
        let rest = cursor.rest();
        match has(VALUE) || rest.is_empty() {
            true => Ok(Self {
                partition,
                key,
                headers,
                value: has(VALUE).then_some(rest),
            }),
            false => Err(cursor.malformed()),
        }
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flag = |flag, is| if is { flag } else { 0 };
        out.push(
            flag(KEY, self.key.is_some())
                | flag(VALUE, self.value.is_some())
                | flag(HEADERS, self.headers.count > 0)
                | flag(PARTITION, self.partition.is_some()),
        );
        if let Some(partition) = self.partition {
            out.extend_from_slice(&partition.to_le_bytes());
        }
        if let Some(key) = self.key {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
        if self.headers.count > 0 {
            out.extend_from_slice(&self.headers.count.to_le_bytes());
            out.extend_from_slice(self.headers.bytes);
        }
        out.extend_from_slice(self.value.unwrap_or_default());
    }
}

impl<'a> TopicHeaders<'a> {
    /// Encodes headers into an empty buffer. Headers after the 65,535th are left out, and longer
    /// names are cut.
    pub fn encode<'h>(
        headers: impl Iterator<Item = (&'h str, Option<&'h [u8]>)>,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        let mut count = 0;
        for (name, value) in headers.take(usize::from(u16::MAX)) {
            put_text16(buffer, name);
            let length = value.map_or(NOTHING, |value| value.len() as u32);
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(value.unwrap_or_default());
            count += 1;
        }
        Self {
            count,
            bytes: buffer,
        }
    }

    /// Reads the count and the headers, each once.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let count = cursor.u16()?;
        let bytes = cursor.rest();
        for _ in 0..count {
            header(cursor)?;
        }
        let size = bytes.len() - cursor.rest().len();
        Ok(Self {
            count,
            bytes: &bytes[..size],
        })
    }

    /// Iterates over the headers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Option<&'a [u8]>)> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, "record of a topic");
        (0..self.count).map_while(move |_| header(&mut cursor).ok())
    }
}

fn header<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, Option<&'a [u8]>), Malformed> {
    let name = cursor.text16()?;
    match cursor.u32()? {
        NOTHING => Ok((name, None)),
        length => Ok((name, Some(cursor.take(length as usize)?))),
    }
}

fn bytes32<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let length = cursor.u32()?;
    cursor.take(length as usize)
}

/// The payload of the REPLY to an APPEND of records to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedRecords<'a>(&'a [u8]);

impl<'a> AppendedRecords<'a> {
    /// Encoded bytes per record.
    const PLACE_SIZE: usize = 12;

    /// Decodes the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        match payload.len().is_multiple_of(Self::PLACE_SIZE) {
            true => Ok(Self(payload)),
            false => Err(Cursor::new(payload, "APPEND reply").malformed()),
        }
    }

    /// Appends the frame: a partition and an offset for each record.
    pub fn encode(
        places: impl Iterator<Item = (u32, u64)>,
        correlation: Correlation,
        out: &mut Vec<u8>,
    ) {
        encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
            for (partition, offset) in places {
                out.extend_from_slice(&partition.to_le_bytes());
                out.extend_from_slice(&offset.to_le_bytes());
            }
        });
    }

    /// Iterates over the partition and offset of each record, in the order of the APPEND.
    pub fn places(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let mut cursor = Cursor::new(self.0, "APPEND reply");
        std::iter::from_fn(move || Some((cursor.u32().ok()?, cursor.u64().ok()?)))
    }
}

/// Appends a record for the answer to a READ or a FOLLOW. The time is in milliseconds since
/// 1970-01-01 UTC, in two's complement.
pub fn put_extracted(offset: u64, time_ms: i64, record: &TopicRecord<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&time_ms.to_le_bytes());
    put_sized(out, |out| record.encode(out));
}

/// Appends the frame of an answer with records encoded by [`put_extracted`]. `flags` state whether
/// more items follow.
pub fn encode_extracted(
    start: u64,
    next: u64,
    records: &[u8],
    flags: Flags,
    correlation: Correlation,
    out: &mut Vec<u8>,
) {
    encode_frame(out, Kind::REPLY, flags, 0, correlation, |out| {
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&next.to_le_bytes());
        out.extend_from_slice(records);
    });
}
