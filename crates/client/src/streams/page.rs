//! `RecordPage`: a part of a stored stream, and the limits of a read.

use bytes::Bytes;

use crate::CallError;

/// Default limit of records per read.
const RECORDS_MAX: u32 = 10_000;

/// Default limit of bytes per read.
const BYTES_MAX: u32 = 1 << 20;

/// A record of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset in the stream.
    pub offset: u64,
    /// Time of the append, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Bytes of the record.
    pub body: Bytes,
}

/// A contiguous part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPage {
    /// Oldest offset retained.
    pub start: u64,
    /// Offset after the newest record of the stream.
    pub next: u64,
    /// Records in order; the stream may continue after the last.
    pub records: Vec<Record>,
}

/// Limits of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Maximum number of records.
    pub records_max: u32,
    /// Maximum size of the records in bytes; the first record is returned even if it is larger.
    pub bytes_max: u32,
}

impl Default for ReadLimit {
    fn default() -> Self {
        Self {
            records_max: RECORDS_MAX,
            bytes_max: BYTES_MAX,
        }
    }
}

impl ReadLimit {
    pub(crate) fn from(self, from: u64) -> [u8; wire::Read::SIZE] {
        let read = wire::Read {
            from,
            records_max: self.records_max,
            bytes_max: self.bytes_max,
        };
        read.encode()
    }
}

impl RecordPage {
    pub(crate) fn decode(payload: &Bytes) -> Result<Self, CallError> {
        let extract =
            wire::Extract::decode(payload).map_err(|error| CallError::malformed(&error))?;
        let wire::Extract { start, next, .. } = extract;
        let records = extract.records().map(|record| Record {
            offset: record.offset,
            time_ms: record.time_ms,
            body: payload.slice_ref(record.bytes),
        });
        Ok(Self {
            start,
            next,
            records: records.collect(),
        })
    }
}
