//! The buffer between blocks and a segment file.
//!
//! Its address is congruent to the file's offset modulo the page: copying into the page cache is
//! 25 to 100 times slower on some processors when source and target are a few bytes apart within
//! it (Zen 3's `rep movsb`; our own runs).

use std::io;

use crate::disk::File;
use crate::segment::write_at_once;

const PAGE_SIZE: usize = 4096;

/// Bytes per write at most. Larger writes are not faster, and these stay in a cache of the processor.
const SIZE_MAX: usize = 256 << 10;

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
    /// File offset from which on nothing is sent to the device, while a sync is under way: it would wait
    /// for these bytes too.
    held_from: Option<u64>,
}

impl WriteBuffer {
    pub(crate) fn new() -> WriteBuffer {
        let bytes = vec![0; SIZE_MAX + 2 * PAGE_SIZE];
        WriteBuffer {
            page: bytes.as_ptr().addr().wrapping_neg() % PAGE_SIZE,
            bytes,
            offset: 0,
            length: 0,
            held_from: None,
        }
    }

    /// Sets the file offset of the next byte. The buffer must be empty.
    pub(crate) fn start_at(&mut self, offset: u64) {
        assert_eq!(self.length, 0, "the buffer must be flushed first");
        self.offset = offset;
    }

    /// Adds bytes. Whenever the buffer is full, writes it, and begins to send it to the device, which then
    /// works while the following blocks are checksummed and copied. The last page is left out: it will be
    /// written to again, and would be sent twice.
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
                let begin = self.offset;
                self.flush(file)?;
                if self.held_from.is_none() {
                    self.send(file, begin)?;
                }
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

    /// Sends nothing to the device until [`WriteBuffer::release`]. The buffer must be flushed.
    pub(crate) fn hold(&mut self) {
        self.held_from = Some(self.offset);
    }

    /// Begins to send to the device what was written since [`WriteBuffer::hold`].
    pub(crate) fn release(&mut self, file: &dyn File) -> io::Result<()> {
        match self.held_from.take() {
            Some(begin) => self.send(file, begin),
            None => Ok(()),
        }
    }

    /// Begins to send the whole pages that were written from an offset on.
    fn send(&self, file: &dyn File, begin: u64) -> io::Result<()> {
        let (begin, end) = (page_of(begin), page_of(self.offset));
        match end > begin {
            true => file.begin_write_out(begin, end - begin),
            false => Ok(()),
        }
    }

    fn phase(&self) -> usize {
        self.offset as usize % PAGE_SIZE
    }
}

/// Returns the offset of the page that has the byte at `offset`.
fn page_of(offset: u64) -> u64 {
    offset - offset % PAGE_SIZE as u64
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// A file that records the ranges of calls.
    #[derive(Debug, Default)]
    struct Calls {
        written: Mutex<Vec<(u64, u64)>>,
        sent: Mutex<Vec<(u64, u64)>>,
        bytes: Mutex<Vec<u8>>,
    }

    impl File for Calls {
        fn size(&self) -> io::Result<u64> {
            Ok(self.bytes.lock().len() as u64)
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
            self.written.lock().push((offset, bytes.len() as u64));
            self.bytes.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn allocate(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn begin_write_out(&self, offset: u64, size: u64) -> io::Result<()> {
            self.sent.lock().push((offset, size));
            Ok(())
        }

        fn set_size(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn sync_data(&self) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn sync_all(&self) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[test]
    fn full_buffers_are_sent_to_the_device_except_for_their_last_page() {
        let (file, mut buffer) = (Calls::default(), WriteBuffer::new());
        buffer.start_at(5_000);
        let pushed: Vec<u8> = (0..600_000_u32).map(|at| (at / 7) as u8).collect();
        for piece in pushed.chunks(70_001) {
            buffer.push(&file, piece).unwrap();
        }
        let full = SIZE_MAX as u64;
        assert_eq!(*file.written.lock(), [(5_000, full), (5_000 + full, full)]);
        // Every page but the last is sent once.
        let first = (4_096, full);
        assert_eq!(*file.sent.lock(), [first, (4_096 + full, full)]);
        buffer.flush(&file).unwrap();
        assert_eq!(file.sent.lock().len(), 2, "the sync sends the rest");
        assert!(*file.bytes.lock() == pushed);
        // During a sync, nothing is sent.
        buffer.hold();
        buffer.push(&file, &pushed).unwrap();
        assert_eq!(file.sent.lock().len(), 2);
        buffer.release(&file).unwrap();
        let held = page_of(605_000 + 2 * full) - page_of(605_000);
        assert_eq!(file.sent.lock()[2..], [(page_of(605_000), held)]);
    }
}
