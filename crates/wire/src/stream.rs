//! Raw streams: bodies of APPEND, READ and FOLLOW, and payloads of their answers.
//!
//! They take the place of a message's body, after deadline and metadata.

use crate::cursor::{Cursor, Malformed};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Value of `expected` if any offset is accepted.
const ANYWHERE: u64 = u64::MAX;

/// Records to append, all or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append<'a> {
    /// Offset that the first record must get, if any.
    pub expected: Option<u64>,
    /// Number of records.
    pub count: u32,
    records: &'a [u8],
}

impl<'a> Append<'a> {
    /// Decodes the body of an APPEND. Checks that all records are complete and nothing follows
    /// them.
    pub fn decode(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(body, "APPEND");
        let expected = Some(cursor.u64()?).filter(|expected| *expected != ANYWHERE);
        let count = cursor.u32()?;
        let records = cursor.rest();
        for _ in 0..count {
            let length = cursor.u32()?;
            cursor.take(length as usize)?;
        }
        match cursor.is_empty() {
            true => Ok(Self {
                expected,
                count,
                records,
            }),
            false => Err(cursor.malformed()),
        }
    }

    /// Appends the body of an APPEND.
    pub fn encode(expected: Option<u64>, records: &[impl AsRef<[u8]>], out: &mut Vec<u8>) {
        out.extend_from_slice(&expected.unwrap_or(ANYWHERE).to_le_bytes());
        out.extend_from_slice(&(records.len() as u32).to_le_bytes());
        for record in records {
            let record = record.as_ref();
            out.extend_from_slice(&(record.len() as u32).to_le_bytes());
            out.extend_from_slice(record);
        }
    }

    /// Iterates over the records, in order.
    pub fn records(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let mut cursor = Cursor::new(self.records, "APPEND");
        std::iter::from_fn(move || {
            let length = cursor.u32().ok()?;
            cursor.take(length as usize).ok()
        })
    }
}

/// The payload of the REPLY to an APPEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first: u64,
    /// Offset after the last record.
    pub next: u64,
}

impl Appended {
    /// Decodes the payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "APPEND reply");
        Ok(Self {
            first: cursor.u64()?,
            next: cursor.u64()?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
            out.extend_from_slice(&self.first.to_le_bytes());
            out.extend_from_slice(&self.next.to_le_bytes());
        });
    }
}

/// The body of a READ or a FOLLOW. For a FOLLOW, the limits apply to each item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// First offset to read.
    pub from: u64,
    /// Number of records at most.
    pub records_max: u32,
    /// Bytes of records at most. One record is returned even if it is larger.
    pub bytes_max: u32,
}

impl Read {
    /// Encoded size in bytes.
    pub const SIZE: usize = 16;

    /// Decodes the body.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(body, "READ");
        Ok(Self {
            from: cursor.u64()?,
            records_max: cursor.u32()?,
            bytes_max: cursor.u32()?,
        })
    }

    /// Encodes the body.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.from.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.records_max.to_le_bytes());
        bytes[12..].copy_from_slice(&self.bytes_max.to_le_bytes());
        bytes
    }
}

/// A record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset of the record.
    pub offset: u64,
    /// Time of the append in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Bytes of the record.
    pub bytes: &'a [u8],
}

impl Record<'_> {
    /// Encoded bytes before those of each record.
    pub const HEAD_SIZE: usize = 20;
}

/// The payload of the REPLY to a READ, and of each item of a FOLLOW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extract<'a> {
    /// Offset of the oldest record.
    pub start: u64,
    /// Offset after the newest durable record.
    pub next: u64,
    records: &'a [u8],
}

impl<'a> Extract<'a> {
    /// Decodes the payload. Checks that all records are complete.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "READ reply");
        let extract = Self {
            start: cursor.u64()?,
            next: cursor.u64()?,
            records: cursor.rest(),
        };
        while !cursor.is_empty() {
            read_record(&mut cursor)?;
        }
        Ok(extract)
    }

    /// Appends the frame. `flags` state whether more items follow.
    pub fn encode<'r>(
        start: u64,
        next: u64,
        records: impl Iterator<Item = Record<'r>>,
        flags: Flags,
        correlation: Correlation,
        out: &mut Vec<u8>,
    ) {
        encode_frame(out, Kind::REPLY, flags, 0, correlation, |out| {
            out.extend_from_slice(&start.to_le_bytes());
            out.extend_from_slice(&next.to_le_bytes());
            for record in records {
                out.extend_from_slice(&record.offset.to_le_bytes());
                out.extend_from_slice(&record.time_ms.to_le_bytes());
                out.extend_from_slice(&(record.bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(record.bytes);
            }
        });
    }

    /// Iterates over the records, in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.records, "READ reply");
        std::iter::from_fn(move || read_record(&mut cursor).ok())
    }
}

fn read_record<'a>(cursor: &mut Cursor<'a>) -> Result<Record<'a>, Malformed> {
    let offset = cursor.u64()?;
    let time_ms = cursor.u64()?;
    let length = cursor.u32()?;
    let bytes = cursor.take(length as usize)?;
    Ok(Record {
        offset,
        time_ms,
        bytes,
    })
}
