//! Copies of received bodies.
//!
//! A body is copied from the read buffer, because its receiver may keep it. Small ones share a block
//! of memory with the bodies before and after them. Most are dropped soon, and then the block is
//! used again: a body allocates nothing. A body that is kept holds one block at most.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Size of a block in bytes.
const BLOCK_SIZE: usize = 512;

/// Largest body that is copied into a block, in bytes. Larger ones have memory of their own.
const SHARED_SIZE_MAX: usize = BLOCK_SIZE / 2;

thread_local! {
    /// The unused rest of the thread's block.
    static REST: RefCell<BytesMut> = RefCell::default();
}

/// Returns a copy of a body.
#[inline]
pub(super) fn copy(body: &[u8]) -> Bytes {
    match body.len() {
        0 => Bytes::new(),
        1..=SHARED_SIZE_MAX => {
            let copied = REST.try_with(|rest| copy_into(&mut rest.borrow_mut(), body));
            // When the thread ends, a body has memory of its own.
            copied.unwrap_or_else(|_| Bytes::copy_from_slice(body))
        }
        _ => Bytes::copy_from_slice(body),
    }
}

fn copy_into(rest: &mut BytesMut, body: &[u8]) -> Bytes {
    // A block whose bodies are all dropped is reclaimed from its beginning.
    if rest.capacity() < body.len() && !rest.try_reclaim(body.len()) {
        *rest = BytesMut::with_capacity(BLOCK_SIZE);
    }
    rest.extend_from_slice(body);
    rest.split().freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_keep_their_bytes_while_blocks_are_reused() {
        let mut rest = BytesMut::new();
        let mut kept = Vec::new();
        for number in 0..2_000_u32 {
            let body = vec![number as u8; 1 + number as usize % SHARED_SIZE_MAX];
            let copy = copy_into(&mut rest, &body);
            assert_eq!(copy, body);
            if number % 7 == 0 {
                kept.push((body, copy));
            }
        }
        for (body, copy) in kept {
            assert_eq!(copy, body);
        }
    }

    #[test]
    fn a_block_is_reused_when_its_bodies_are_dropped() {
        let mut rest = BytesMut::new();
        let first = copy_into(&mut rest, &[1; 100]);
        let place = first.as_ptr();
        drop(first);
        let places: Vec<_> = (0..20)
            .map(|_| copy_into(&mut rest, &[2; 100]).as_ptr())
            .collect();
        assert!(places.contains(&place));
        let block = place.addr()..place.addr() + BLOCK_SIZE;
        assert!(places.iter().all(|place| block.contains(&place.addr())));
    }

    #[test]
    fn small_and_large_bodies_are_copied() {
        for size in [0, 1, SHARED_SIZE_MAX, SHARED_SIZE_MAX + 1, 10_000] {
            let body = vec![7; size];
            assert_eq!(copy(&body), body);
        }
    }
}
