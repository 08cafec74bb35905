//! Reads from connections into a buffer that all connections of a thread share.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

use net::Source;

/// The size of the buffer, in bytes.
const CHUNK_SIZE: usize = 256 << 10;

thread_local! {
    static CHUNK: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK_SIZE]);
}

/// Calls `then` with the thread's buffer.
pub fn with_chunk<R>(then: impl FnOnce(&mut [u8]) -> R) -> R {
    CHUNK.with_borrow_mut(|chunk| then(chunk))
}

/// Returns how many bytes were read, possibly none; `None` when the peer has closed the connection
/// or it is lost.
pub fn poll_count(
    source: &mut dyn Source,
    cx: &mut Context<'_>,
    chunk: &mut [u8],
) -> Poll<Option<usize>> {
    source.poll_read(cx, chunk).map(count)
}

/// Returns how many bytes were read like [`poll_count`].
pub fn count(read: io::Result<usize>) -> Option<usize> {
    match read {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Some(0),
        Err(_) => None,
    }
}
