//! Buffers lent to connections for a turn, so that idle connections hold none.
//!
//! The buffers are thread-local, so no lock is needed.

use std::cell::{Cell, RefCell};

/// Size of the read buffer in bytes.
const CHUNK_SIZE: usize = 256 << 10;

/// Buffers up to this size go back to the pool; larger ones are freed.
const POOLED_SIZE_MAX: usize = 256 << 10;
const POOL_LENGTH_MAX: usize = 16;

thread_local! {
    static CHUNK: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Takes the thread's read buffer, which still contains older data.
pub(crate) fn take_chunk() -> Vec<u8> {
    let chunk = CHUNK.take();
    if chunk.is_empty() {
        vec![0; CHUNK_SIZE]
    } else {
        chunk
    }
}

/// Returns the buffer of [`take_chunk`].
pub(crate) fn give_chunk(chunk: Vec<u8>) {
    CHUNK.set(chunk);
}

/// Takes an empty write buffer; its capacity is arbitrary.
pub(crate) fn take() -> Vec<u8> {
    POOL.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Returns a buffer to the pool.
pub(crate) fn give(mut buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > POOLED_SIZE_MAX {
        return;
    }
    buffer.clear();
    POOL.with_borrow_mut(|pool| {
        if pool.len() < POOL_LENGTH_MAX {
            pool.push(buffer);
        }
    });
}
