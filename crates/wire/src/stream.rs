//! Raw streams: appending to one, reading it, following it.
//!
//! The bodies of APPEND, READ and FOLLOW, and the payloads of their answers. They stand where any
//! message's body stands, behind deadline and metadata.

use crate::cursor::{Cursor, Malformed};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// What `expected` says when nothing is expected.
const ANYWHERE: u64 = u64::MAX;

/// Records to be appended, all or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append<'a> {
    /// The offset that the first one must get, when that matters.
    pub expected: Option<u64>,
    /// How many.
    pub count: u32,
    records: &'a [u8],
}

impl<'a> Append<'a> {
    /// Reads the body of an APPEND. Its records are whole, and nothing is behind them.
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

    /// The records, in order.
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
    /// The offset of the first record.
    pub first: u64,
    /// The offset behind the last one.
    pub next: u64,
}

impl Appended {
    /// Reads the payload.
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

/// The body of a READ, or of a FOLLOW, for which the limits hold for each item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The first offset.
    pub from: u64,
    /// Records, at most.
    pub records_max: u32,
    /// Their bytes, at most; one record comes even if it is larger.
    pub bytes_max: u32,
}

impl Read {
    /// Bytes it takes.
    pub const SIZE: usize = 16;

    /// Reads the body.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(body, "READ");
        Ok(Self {
            from: cursor.u64()?,
            records_max: cursor.u32()?,
            bytes_max: cursor.u32()?,
        })
    }

    /// As it stands there.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.from.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.records_max.to_le_bytes());
        bytes[12..].copy_from_slice(&self.bytes_max.to_le_bytes());
        bytes
    }
}

/// One record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl Record<'_> {
    /// Bytes that stand before those of each record.
    pub const HEAD_SIZE: usize = 20;
}

/// The payload of the REPLY to a READ, and of each item of a FOLLOW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extract<'a> {
    /// The oldest offset that is kept.
    pub start: u64,
    /// The offset behind the newest durable record.
    pub next: u64,
    records: &'a [u8],
}

impl<'a> Extract<'a> {
    /// Reads the payload. Its records are whole.
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

    /// Appends the frame; `flags` say whether more items follow.
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

    /// The records, in order.
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
