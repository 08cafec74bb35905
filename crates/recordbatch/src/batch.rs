//! Cutting bytes into batches.

use crate::header::{CRC_FROM, HEADER_SIZE, Header, LENGTH_AT, MAGIC, MAGIC_AT, UNCOUNTED_SIZE};
use crate::record::Records;

/// One whole batch. Its length is that of its bytes and its format is known; nothing else of it has
/// been checked.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: Header,
    bytes: &'a [u8],
}

/// Bytes that do not begin with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The end comes before that of the batch.
    #[error("a record batch of {size} bytes is cut off after {have}")]
    Torn {
        /// What is there.
        have: usize,
        /// What the batch takes, as far as that is known.
        size: usize,
    },
    /// No header fits into the length.
    #[error("{length} is no length of a record batch")]
    Length {
        /// What stands there.
        length: i32,
    },
    /// An old message set, or no batch at all.
    #[error("format {magic} of a message, only {MAGIC} is spoken")]
    Magic {
        /// What stands there.
        magic: i8,
    },
}

impl<'a> Batch<'a> {
    /// The batch that `bytes` begin with, and what is behind it.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let size = size(bytes)?;
        let (bytes, rest) = bytes.split_at(size);
        let header = bytes.first_chunk().expect("a batch holds its header");
        let header = Header::read(header);
        Ok((Self { header, bytes }, rest))
    }

    /// The fields before the records.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The whole batch.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records as they stand, compressed or not.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_SIZE..]
    }

    /// Whether the checksum is that of the bytes.
    pub fn is_intact(&self) -> bool {
        crc32c::crc32c(&self.bytes[CRC_FROM..]) == self.header.crc
    }

    /// The records, if they are not compressed.
    pub fn records(&self) -> Option<Records<'a>> {
        match self.header.attributes.compression() {
            Some(crate::Compression::None) => Some(Records::new(&self.header, self.payload())),
            _ => None,
        }
    }
}

/// Bytes of the batch that `bytes` begin with; all of them are there.
pub(crate) fn size(bytes: &[u8]) -> Result<usize, Malformed> {
    let torn = |size| Malformed::Torn {
        have: bytes.len(),
        size,
    };
    // An old message set has its format in the same place, and is shorter than our header.
    let magic = bytes.get(MAGIC_AT).ok_or(torn(HEADER_SIZE))?;
    let magic = i8::from_be_bytes([*magic]);
    if magic != MAGIC {
        return Err(Malformed::Magic { magic });
    }
    let length = bytes[LENGTH_AT..].first_chunk();
    let length = i32::from_be_bytes(*length.expect("the format stands behind the length"));
    let size = usize::try_from(length).map_err(|_| Malformed::Length { length })?;
    let size = size.saturating_add(UNCOUNTED_SIZE);
    match size {
        _ if size < HEADER_SIZE => Err(Malformed::Length { length }),
        _ if bytes.len() < size => Err(torn(size)),
        _ => Ok(size),
    }
}

/// All batches of some bytes, one after the other; ends after the first error.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Those in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match Batch::split(std::mem::take(&mut self.rest)) {
            Ok((batch, rest)) => {
                self.rest = rest;
                Some(Ok(batch))
            }
            Err(malformed) => Some(Err(malformed)),
        }
    }
}
