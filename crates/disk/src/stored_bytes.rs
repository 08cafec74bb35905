//! Bytes in memory or in a file.

use std::io;

use bytes::Bytes;

use crate::FileRange;

/// Bytes that do not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBytes {
    /// In memory, shared with others. Copy them to hold them for long.
    Memory(Bytes),
    /// In a file that is never written again. It takes disk space as long as it is held.
    File(FileRange),
}

impl StoredBytes {
    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        match self {
            StoredBytes::Memory(bytes) => bytes.len(),
            StoredBytes::File(range) => range.size,
        }
    }

    /// Returns the bytes, which it reads if they are in a file.
    pub fn into_bytes(self) -> io::Result<Bytes> {
        match self {
            StoredBytes::Memory(bytes) => Ok(bytes),
            StoredBytes::File(range) => range.read().map(Bytes::from),
        }
    }
}

impl From<Bytes> for StoredBytes {
    fn from(bytes: Bytes) -> StoredBytes {
        StoredBytes::Memory(bytes)
    }
}
