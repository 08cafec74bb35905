//! Entropy that a test can foresee.

use std::sync::atomic::{AtomicU64, Ordering};

use platform::Entropy;

/// Random numbers that are predictable: each is the one before, with its upper 16 bits counted up.
pub struct Counting(pub AtomicU64);

impl Entropy for Counting {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(0x0001_0000_0000_0000, Ordering::Relaxed)
    }
}
