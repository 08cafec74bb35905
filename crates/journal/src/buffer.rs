//! The buffer between blocks and a segment file.
//!
//! Its address is congruent to the file's offset modulo the page: copying into the page cache is
//! 25 to 100 times slower on some processors when source and target are a few bytes apart within
//! it (Zen 3's `rep movsb`; our own runs).

use std::io;

use crate::disk::File;
use crate::segment::write_at_once;

const PAGE_SIZE: usize = 4096;

/// Bytes per write at most. Larger writes are not faster.
const SIZE_MAX: usize = 1 << 20;

/// Collects bytes that follow each other in a file and writes them at once.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    /// Zeroed memory; untouched pages cost nothing.
    bytes: Vec<u8>,
    /// Offset of the first page boundary in `bytes`.
    page: usize,
    /// File offset of the collected bytes.
    offset: u64,
    /// Number of collected bytes.
    length: usize,
}

impl WriteBuffer {
    pub(crate) fn new() -> WriteBuffer {
        let bytes = vec![0; SIZE_MAX + 2 * PAGE_SIZE];
        WriteBuffer {
            page: bytes.as_ptr().addr().wrapping_neg() % PAGE_SIZE,
            bytes,
            offset: 0,
            length: 0,
        }
    }

    /// Sets the file offset of the next byte. The buffer must be empty.
    pub(crate) fn start_at(&mut self, offset: u64) {
        assert_eq!(self.length, 0, "the buffer must be flushed first");
        self.offset = offset;
    }

    /// Adds bytes; writes whenever the buffer is full.
    pub(crate) fn push(&mut self, file: &dyn File, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let start = self.page + self.phase();
            let free = &mut self.bytes[start..][self.length..SIZE_MAX];
            let length = free.len().min(bytes.len());
            let (now, later) = bytes.split_at(length);
            free[..length].copy_from_slice(now);
            self.length += length;
            bytes = later;
            if self.length == SIZE_MAX {
                self.flush(file)?;
            }
        }
        Ok(())
    }

    /// Writes the collected bytes.
    pub(crate) fn flush(&mut self, file: &dyn File) -> io::Result<()> {
        if self.length == 0 {
            return Ok(());
        }
        let start = self.page + self.phase();
        write_at_once(file, &self.bytes[start..start + self.length], self.offset)?;
        self.offset += self.length as u64;
        self.length = 0;
        Ok(())
    }

    fn phase(&self) -> usize {
        self.offset as usize % PAGE_SIZE
    }
}
