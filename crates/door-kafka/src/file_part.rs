//! Records in a file, as bytes that a connection sends.

use std::io;
use std::os::fd::BorrowedFd;

use net::FileBytes;
use topic_service::FileRange;

/// A range of a file with records.
pub(super) struct FilePart(pub(super) FileRange);

impl FileBytes for FilePart {
    fn size(&self) -> usize {
        self.0.size
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u64)> {
        Some((self.0.file.descriptor()?, self.0.offset))
    }

    fn read_at(&self, buffer: &mut [u8], at: usize) -> io::Result<()> {
        self.0.file.read_at(buffer, self.0.offset + at as u64)
    }
}
