//! Splitting bytes into batches.

use crate::header::{CRC_FROM, HEADER_SIZE, Header, LENGTH_AT, MAGIC, MAGIC_AT, UNCOUNTED_SIZE};
use crate::record::Records;

/// A whole batch. Its length and format were checked, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: Header,
    bytes: &'a [u8],
}

/// The bytes do not begin with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end before the batch does.
    #[error("a record batch of {size} bytes is cut off after {have}")]
    Torn {
        /// The number of bytes present.
        have: usize,
        /// The size of the batch, as far as it is known.
        size: usize,
    },
    /// The length is too small for a header.
    #[error("invalid length {length} of a record batch")]
    Length {
        /// The value of the length field.
        length: i32,
    },
    /// The bytes are an old message set, or not a batch.
    #[error("unsupported message format {magic} (only {MAGIC} is supported)")]
    Magic {
        /// The value of the format field.
        magic: i8,
    },
}

impl<'a> Batch<'a> {
    /// Splits `bytes` into their first batch and the rest.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let size = size(bytes)?;
        let (bytes, rest) = bytes.split_at(size);
        let header = bytes.first_chunk().expect("a batch holds its header");
        let header = Header::read(header);
        Ok((Self { header, bytes }, rest))
    }

    /// Returns the fields before the records.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the bytes of the whole batch.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the bytes of the header, and those of the records.
    pub(crate) fn parts(&self) -> (&'a [u8; HEADER_SIZE], &'a [u8]) {
        let parts = self.bytes.split_first_chunk();
        parts.expect("a batch holds its header")
    }

    /// Returns the bytes of the records, compressed or not.
    pub fn payload(&self) -> &'a [u8] {
        self.parts().1
    }

    /// Returns whether the checksum is correct.
    pub fn is_intact(&self) -> bool {
        crc32c::crc32c(&self.bytes[CRC_FROM..]) == self.header.crc
    }

    /// Returns the records, if they are not compressed.
    pub fn records(&self) -> Option<Records<'a>> {
        match self.header.attributes.compression() {
            Some(crate::Compression::None) => Some(Records::new(&self.header, self.payload())),
            _ => None,
        }
    }
}

impl Header {
    /// Returns the header of the batch at the start of `size` bytes, of which `head` are the first
    /// ones: at least [`HEADER_SIZE`], if there are so many.
    pub fn of_first(head: &[u8], size: usize) -> Result<Self, Malformed> {
        size_within(head, size)?;
        match head.first_chunk() {
            Some(header) => Ok(Self::read(header)),
            None => Err(Malformed::Torn {
                have: head.len(),
                size: HEADER_SIZE,
            }),
        }
    }
}

/// Returns the size of the first batch in `bytes`, if all of it is present.
pub(crate) fn size(bytes: &[u8]) -> Result<usize, Malformed> {
    size_within(bytes, bytes.len())
}

/// Returns the size of the first batch in `have` bytes that begin with `bytes`, if all of it is
/// present.
fn size_within(bytes: &[u8], have: usize) -> Result<usize, Malformed> {
    let torn = |size| Malformed::Torn { have, size };
    // An old message set has its format at the same place and may be shorter than this header.
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
        _ if have < size => Err(torn(size)),
        _ => Ok(size),
    }
}

/// An iterator over all batches in some bytes; it ends after the first error.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Returns an iterator over the batches in `bytes`.
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
