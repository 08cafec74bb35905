//! Entropy that a test can foresee.

use std::sync::atomic::{AtomicU64, Ordering};

use platform::Entropy;

/// The next number, in the upper bits.
pub(crate) struct Counting(pub(crate) AtomicU64);

impl Entropy for Counting {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(0x0001_0000_0000_0000, Ordering::Relaxed)
    }
}
