//! Buffers that connections borrow for a turn, so that idle ones hold none.
//!
//! Both kinds belong to the thread: nothing is shared and nothing is locked.

use std::cell::{Cell, RefCell};

/// Bytes read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// Buffers up to this size go back to the pool; larger ones are freed.
const POOLED_SIZE_MAX: usize = 256 << 10;
const POOL_LENGTH_MAX: usize = 16;

thread_local! {
    static CHUNK: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The thread's buffer to read into, filled with whatever was read last.
pub(crate) fn take_chunk() -> Vec<u8> {
    let chunk = CHUNK.take();
    if chunk.is_empty() {
        vec![0; CHUNK_SIZE]
    } else {
        chunk
    }
}

/// Gives back what [`take_chunk`] gave.
pub(crate) fn give_chunk(chunk: Vec<u8>) {
    CHUNK.set(chunk);
}

/// An empty buffer to write into, with whatever room it had before.
pub(crate) fn take() -> Vec<u8> {
    POOL.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Gives a buffer to the pool.
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
