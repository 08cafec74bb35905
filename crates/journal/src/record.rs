//! Records: the contents of a block's body, back to back.
//!
//! ```text
//! | stream u64 | offset u64 | length u32 | kind u8 | tag u8 | 0 u16 | bytes ... |
//! ```
//!
//! Little endian, not aligned. Extents use the same layout. A body has passed its CRC before it is
//! parsed, so a record that does not fit is a bug or a CRC collision; it is an error, never a
//! panic.

use crate::{ShardId, StreamId};

/// Size of a record's header.
pub const RECORD_HEADER_SIZE: usize = 24;

/// The effect of a record on its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// Stores bytes at an offset.
    Data,
    /// Moves the start of the stream to the offset.
    Trim,
    /// Trims the stream like `Trim`, and the bytes must leave the disk.
    Erase,
}

impl RecordKind {
    fn number(self) -> u8 {
        match self {
            RecordKind::Data => 0,
            RecordKind::Trim => 1,
            RecordKind::Erase => 2,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(RecordKind::Data),
            1 => Some(RecordKind::Trim),
            2 => Some(RecordKind::Erase),
            _ => None,
        }
    }
}

/// A record in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// The record's stream.
    pub stream: StreamId,
    /// Data: the record's offset. Trim and erase: the stream's new start.
    pub offset: u64,
    /// The record's effect.
    pub kind: RecordKind,
    /// A tag of the caller; opaque to the journal.
    pub tag: u8,
    /// Data: the payload. Trim and erase: empty.
    pub bytes: &'a [u8],
}

impl RecordView<'_> {
    /// Returns the header.
    pub fn header(&self) -> RecordHeader {
        RecordHeader {
            stream: self.stream,
            offset: self.offset,
            kind: self.kind,
            tag: self.tag,
            length: self.bytes.len(),
        }
    }

    /// Returns the bytes that the record takes in a body.
    pub fn size(&self) -> usize {
        RECORD_HEADER_SIZE + self.bytes.len()
    }
}

/// An invalid record in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The body ends within a record.
    #[error("the record at byte {at} does not fit into its block")]
    Short {
        /// Byte in the body at which the record begins.
        at: usize,
    },
    /// The record's kind is unknown to this version.
    #[error("the record at byte {at} has the unknown kind {kind}")]
    Kind {
        /// Byte in the body at which the record begins.
        at: usize,
        /// The kind.
        kind: u8,
    },
    /// A reserved field is not 0, or a trim has a payload.
    #[error("the record at byte {at} is malformed")]
    Malformed {
        /// Byte in the body at which the record begins.
        at: usize,
    },
}

/// Appends a record to `body`. Its payload must be smaller than 4 GiB.
pub fn encode(record: &RecordView<'_>, body: &mut Vec<u8>) {
    encode_parts(&record.header(), &[record.bytes], body);
}

/// Appends a record whose payload is in parts. They must have the length that `header` states.
pub(crate) fn encode_parts(header: &RecordHeader, payload: &[&[u8]], body: &mut Vec<u8>) {
    let mut bytes = [0; RECORD_HEADER_SIZE];
    bytes[0..8].copy_from_slice(&header.stream.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&header.offset.to_le_bytes());
    bytes[16..20].copy_from_slice(&(header.length as u32).to_le_bytes());
    bytes[20] = header.kind.number();
    bytes[21] = header.tag;
    body.reserve(RECORD_HEADER_SIZE + header.length);
    body.extend_from_slice(&bytes);
    for part in payload {
        body.extend_from_slice(part);
    }
}

/// Returns the sum of the sizes of some parts.
pub(crate) fn size_of_parts(parts: &[&[u8]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The record's stream.
    pub stream: StreamId,
    /// The record's offset; of a trim or an erase, the stream's new start.
    pub offset: u64,
    /// The record's effect.
    pub kind: RecordKind,
    /// The caller's tag.
    pub tag: u8,
    /// Bytes of the payload.
    pub length: usize,
}

/// Decodes the header of the record at byte `at` of a body.
pub fn decode_header(body: &[u8], at: usize) -> Result<RecordHeader, RecordError> {
    let rest = body.get(at..).ok_or(RecordError::Short { at })?;
    let header = rest
        .first_chunk::<RECORD_HEADER_SIZE>()
        .ok_or(RecordError::Short { at })?;
    let length = u32_at(header, 16) as usize;
    let kind = RecordKind::from_number(header[20]).ok_or(RecordError::Kind {
        at,
        kind: header[20],
    })?;
    if header[22..24] != [0, 0] || (kind != RecordKind::Data && length > 0) {
        return Err(RecordError::Malformed { at });
    }
    Ok(RecordHeader {
        stream: StreamId(u64_at(header, 0)),
        offset: u64_at(header, 8),
        kind,
        tag: header[21],
        length,
    })
}

/// Decodes the record at byte `at` of a body.
pub fn decode(body: &[u8], at: usize) -> Result<RecordView<'_>, RecordError> {
    let header = decode_header(body, at)?;
    let rest = &body[at + RECORD_HEADER_SIZE..];
    let bytes = rest.get(..header.length);
    Ok(RecordView {
        stream: header.stream,
        offset: header.offset,
        kind: header.kind,
        tag: header.tag,
        bytes: bytes.ok_or(RecordError::Short { at })?,
    })
}

/// Iterates over the records of a body, each with the byte at which it begins. Ends after the first
/// error.
pub fn records(body: &[u8]) -> Records<'_> {
    Records { body, at: 0 }
}

/// Iterator of [`records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(usize, RecordView<'a>), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.body.len() {
            return None;
        }
        let at = self.at;
        match decode(self.body, at) {
            Ok(record) => {
                self.at += record.size();
                Some(Ok((at, record)))
            }
            Err(error) => {
                self.at = self.body.len();
                Some(Err(error))
            }
        }
    }
}

/// Reads a little-endian `u64`. Panics if `bytes` is too short.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// Reads a `u32` like [`u64_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// Reads a `u16` like [`u64_at`].
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

/// Reads a shard's number like [`u64_at`].
pub(crate) fn shard_at(bytes: &[u8], at: usize) -> ShardId {
    ShardId(u16_at(bytes, at))
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(stream: u64, offset: u64, bytes: &[u8]) -> RecordView<'_> {
        RecordView {
            stream: StreamId(stream),
            offset,
            kind: RecordKind::Data,
            tag: 7,
            bytes,
        }
    }

    #[test]
    fn records_are_decoded_in_order_with_their_positions() {
        let trim = RecordView {
            kind: RecordKind::Trim,
            bytes: &[],
            ..data(1, 9, &[])
        };
        let mut body = Vec::new();
        for record in [data(1, 8, b"one"), trim, data(2, 0, b"")] {
            encode(&record, &mut body);
        }
        let read: Vec<_> = records(&body).map(Result::unwrap).collect();
        assert_eq!(
            read,
            [(0, data(1, 8, b"one")), (27, trim), (51, data(2, 0, b""))]
        );
    }

    #[test]
    fn trim_with_a_payload_is_malformed() {
        let mut body = Vec::new();
        encode(&data(1, 8, b"one"), &mut body);
        body[20] = 1;
        assert_eq!(decode(&body, 0), Err(RecordError::Malformed { at: 0 }));
    }

    proptest! {
        #[test]
        fn decoding_any_body_does_not_panic(body in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..300) {
            let _ = decode(&body, at);
            let _ = records(&body).count();
        }

        #[test]
        fn body_that_ends_within_a_record_is_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            cut in 1usize..24,
        ) {
            let mut body = Vec::new();
            encode(&data(3, 4, &bytes), &mut body);
            body.truncate(body.len() - cut);
            prop_assert_eq!(decode(&body, 0), Err(RecordError::Short { at: 0 }));
        }
    }
}
