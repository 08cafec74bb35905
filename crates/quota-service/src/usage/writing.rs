//! Progress of writing usage to the journal.

use parking_lot::MutexGuard;

/// Progress of writing usage.
#[derive(Default)]
pub(super) struct Writing {
    /// The time of the next write, in nanoseconds of the node's clock.
    pub(super) due_ns: u64,
    /// Bytes appended since the last rewrite.
    pub(super) written: u64,
    /// Bytes of the last rewrite.
    pub(super) alive: u64,
    pub(super) rewriting: Option<Rewrite>,
}

/// A rewrite in progress.
pub(super) struct Rewrite {
    /// The offset before which records are trimmed at its end.
    pub(super) until: u64,
    /// The next day to append.
    pub(super) day: u32,
    pub(super) size: u64,
}

/// Proof that no other thread collects or writes usage.
pub(crate) struct UsageGuard<'a>(pub(super) MutexGuard<'a, Writing>);
