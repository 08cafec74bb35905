//! The ports for time and randomness.

use std::sync::Arc;

/// Time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment; never steps back.
    fn now_ns(&self) -> u64;

    /// Milliseconds since 1970-01-01 UTC; may step.
    fn unix_ms(&self) -> u64;
}

/// Randomness of a cryptographic generator: ids that are made of it cannot be guessed.
pub trait Entropy: Send + Sync {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;
}

/// The time and the randomness of a node.
#[derive(Clone)]
pub struct Ports {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}
