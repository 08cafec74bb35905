//! Counters that many threads add to and seldom anyone reads.
//!
//! So that no cache line moves between processors for an addition, the counters exist once per
//! stripe, each thread adds to its own stripe, and a reader sums them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of stripes. Threads beyond it share stripes.
pub(crate) const STRIPES: usize = 64;

static STRIPE_NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The stripe of this thread.
    static STRIPE: usize = STRIPE_NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

/// The counts of the threads of a stripe. No two stripes share a cache line; processors fetch lines
/// of 64 bytes in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const COUNT: usize>([AtomicU64; COUNT]);

/// This number of counters; see the module's documentation.
#[derive(Debug)]
pub struct Stripes<const COUNT: usize>(Box<[Stripe<COUNT>]>);

impl<const COUNT: usize> Default for Stripes<COUNT> {
    fn default() -> Self {
        let stripe = |_| Stripe([const { AtomicU64::new(0) }; COUNT]);
        Self((0..STRIPES).map(stripe).collect())
    }
}

impl<const COUNT: usize> Stripes<COUNT> {
    /// Returns the value of a counter.
    pub fn get(&self, index: usize) -> u64 {
        let parts = self.0.iter().map(|it| &it.0[index]);
        parts.map(|it| it.load(Ordering::Relaxed)).sum()
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(&self, index: usize, more: u64) {
        self.own()[index].fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the counters that this thread adds to.
    #[inline]
    pub(crate) fn own(&self) -> &[AtomicU64; COUNT] {
        &self.0[STRIPE.with(|stripe| *stripe)].0
    }
}
