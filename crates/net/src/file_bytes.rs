//! Bytes in a file, to be written to a connection.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes that are copied at once where a transport cannot send from a file.
const COPY_SIZE: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A range of bytes of a file. They must not change while they are queued.
pub trait FileBytes: Send + Sync {
    /// Returns the number of bytes, which is not 0.
    fn size(&self) -> usize;

    /// Returns the file and the place of the first byte in it; `None` if it is not a file of the
    /// operating system.
    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u64)>;

    /// Fills the buffer with the bytes from `at` on.
    fn read_at(&self, buffer: &mut [u8], at: usize) -> io::Result<()>;
}

/// The file could not be read. The frame that it belongs to cannot be completed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read bytes to be sent: {0}")]
struct Unreadable(io::Error);

/// Marks an error as one of the file, and not of the connection.
pub(crate) fn unreadable(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), Unreadable(error))
}

/// Returns true if the error is one of a file, and not of the connection.
pub(crate) fn is_unreadable(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<Unreadable>())
}

/// Reads some bytes from `at` on into a buffer of the thread, and passes them to `write`.
pub(crate) fn copy(
    file: &dyn FileBytes,
    at: usize,
    write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let size = file.size().saturating_sub(at).min(COPY_SIZE);
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.is_empty() {
            buffer.resize(COPY_SIZE, 0);
        }
        let bytes = &mut buffer[..size];
        file.read_at(bytes, at).map_err(unreadable)?;
        write(bytes)
    })
}
