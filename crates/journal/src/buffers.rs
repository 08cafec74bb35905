//! A pool of block buffers without readers, for reuse.
//!
//! A busy shard fills one buffer after the other, and each is part of the tail for a while. Without
//! the pool, each block would take memory that the kernel has to zero first. The pool is bounded;
//! buffers beyond the bound are freed.

use bytes::Bytes;

/// Bytes in the pool of one shard at most.
const SIZE_MAX: usize = 4 << 20;

/// Bytes of memory that a block may occupy, as a multiple of its size.
const ROOM_MAX: usize = 4;

/// Pooled buffers of one shard.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    held: Vec<Vec<u8>>,
    size: usize,
}

impl Buffers {
    /// Returns an empty buffer with at least `capacity` bytes. Pooled buffers that are smaller are freed.
    pub(crate) fn take(&mut self, capacity: usize) -> Vec<u8> {
        while let Some(buffer) = self.held.pop() {
            self.size -= buffer.capacity();
            if buffer.capacity() >= capacity {
                return buffer;
            }
        }
        Vec::with_capacity(capacity)
    }

    /// Puts the buffer of a block into the pool, unless it still has a reader.
    pub(crate) fn give(&mut self, body: Bytes) {
        let Ok(mut body) = body.try_into_mut() else {
            return;
        };
        body.clear();
        let buffer = Vec::from(body);
        if buffer.capacity() > 0 && self.size + buffer.capacity() <= SIZE_MAX {
            self.size += buffer.capacity();
            self.held.push(buffer);
        }
    }

    /// Frees all pooled buffers.
    pub(crate) fn clear(&mut self) {
        *self = Buffers::default();
    }
}

/// Frees the memory that a block does not need, if that is much. The block is copied for it.
pub(crate) fn free_rest(block: &mut Vec<u8>) {
    if block.capacity() > ROOM_MAX * block.len() {
        block.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_returns_to_the_pool_after_its_last_reader() {
        let mut buffers = Buffers::default();
        let mut block = buffers.take(1000);
        block.extend_from_slice(&[7; 100]);
        let place = block.as_ptr();
        let body = Bytes::from(block).slice(72..);
        let reader = body.clone();
        buffers.give(body);
        assert_eq!(buffers.take(0).capacity(), 0);
        assert_eq!(reader[..], [7; 28]);
        buffers.give(reader);
        let again = buffers.take(0);
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
    }

    #[test]
    fn buffer_has_the_wanted_capacity_and_smaller_ones_are_freed() {
        let mut buffers = Buffers::default();
        for capacity in [1000, 100, 200] {
            buffers.give(Bytes::from(vec![0; capacity]));
        }
        assert_eq!(buffers.take(500).capacity(), 1000);
        assert_eq!((buffers.held.len(), buffers.size), (0, 0));
        assert_eq!(buffers.take(500).capacity(), 500);
    }

    #[test]
    fn only_a_small_block_in_a_large_buffer_is_copied() {
        for (size, capacity) in [(100, 100), (25, 100), (24, 24)] {
            let mut block = Vec::with_capacity(100);
            block.resize(size, 7);
            free_rest(&mut block);
            assert_eq!((block.len(), block.capacity()), (size, capacity));
        }
    }

    #[test]
    fn pool_is_bounded_and_can_be_cleared() {
        let mut buffers = Buffers::default();
        for _ in 0..10 {
            let body = Bytes::from(vec![0; SIZE_MAX / 4]);
            buffers.give(body);
        }
        assert_eq!(buffers.held.len(), 4);
        buffers.clear();
        assert_eq!(buffers.take(0).capacity(), 0);
    }
}
