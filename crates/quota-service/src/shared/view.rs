//! The state of the shared store, for monitoring.

use std::sync::Arc;

use crate::quota_store::{QuotaStore, QuotaStoreView};
use crate::service::Quotas;

/// State of the shared store, and counters since the node was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedStoreView {
    /// State reported by the store.
    pub store: QuotaStoreView,
    /// Takes decided locally from leases.
    pub leased: u64,
    /// Takes denied locally by a recent answer of the store.
    pub denied: u64,
    /// Takes that the store was asked about.
    pub asked: u64,
    /// Cells with debits or returns not yet sent to the store.
    pub unsent: usize,
    /// Debits and returns that were dropped because too many were unsent.
    pub dropped: u64,
}

impl Quotas<'_> {
    /// Returns the state of the shared store; `None` if the cells are local.
    pub fn shared_store_view(self) -> Option<SharedStoreView> {
        use std::sync::atomic::Ordering::Relaxed;
        let shared = self.state().shared.as_ref()?;
        let counts = &shared.counts;
        let unsent = shared.unsent.lock();
        Some(SharedStoreView {
            store: shared.store.view(),
            leased: counts.leased.load(Relaxed),
            denied: counts.denied.load(Relaxed),
            asked: counts.asked.load(Relaxed),
            unsent: unsent.len(),
            dropped: unsent.dropped(),
        })
    }

    /// Returns the store.
    pub fn store(self) -> Option<Arc<dyn QuotaStore>> {
        let shared = self.state().shared.as_ref()?;
        Some(shared.store.clone())
    }
}
