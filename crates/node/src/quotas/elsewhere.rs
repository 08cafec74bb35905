//! Cells that lie elsewhere: in a [store](crate::ports::quota_store) that several nodes share.
//!
//! A take is decided at once if all of its cells are leased, or if one of them was denied a moment
//! ago; else the store is asked ([`ask`]), and whoever takes waits for that as others wait for credit
//! ([`Parked`]). What the doors count is each node's own and lies here. Everything else about a take
//! is as it is without a store: limits, holds and ids are the node's, and a hold ends here and is
//! [owed](owed) there.
//!
//! Invariant: *all nodes together admit what the store has debited, and what a limit gives when the
//! store is [away](away)*; that is counted, told, and owed. Without a store nothing of this is looked
//! at but whether there is one.

mod ask;
mod away;
mod begin;
mod demand;
mod finish;
mod lease;
mod leases;
mod owed;
mod parked;
mod tend;
mod verbs;
mod wanted;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::Quotas;
use crate::ports::quota_store::{QuotaStore, QuotaStoreView};

pub(super) use parked::Running;

/// See the module's documentation.
pub(super) struct Elsewhere {
    store: Arc<dyn QuotaStore>,
    /// How many nodes share the cells.
    nodes: u32,
    leases: leases::Leases,
    owed: Mutex<owed::Owed>,
    shares: away::Shares,
    /// Takes that are asked about, by their ids.
    ids: Mutex<BTreeSet<String>>,
    counts: Counts,
}

/// What was done since the node was started.
#[derive(Default)]
struct Counts {
    /// Takes that were decided here, by leases.
    leased: AtomicU64,
    /// Takes that were denied here, by what the store had said.
    denied: AtomicU64,
    /// Takes that the store was asked about.
    asked: AtomicU64,
}

/// How the store stands, and what was done with it since the node was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElsewhereView {
    /// As the store says.
    pub store: QuotaStoreView,
    /// Takes that were decided here, by leases.
    pub leased: u64,
    /// Takes that were denied here, by what the store had said a moment before.
    pub denied: u64,
    /// Takes that the store was asked about.
    pub asked: u64,
    /// Cells of which something is owed to the store.
    pub owed: usize,
    /// Debits and returns that were forgotten, as too many were owed.
    pub forgotten: u64,
}

impl<'a> Quotas<'a> {
    /// Has cells lie in a store that as many nodes share. Called once, before limits stand.
    pub fn store_in(self, store: Arc<dyn QuotaStore>, nodes: u32) {
        let state = self.state();
        let entries_max = state.options.read().subjects_max;
        let elsewhere = Elsewhere {
            store,
            nodes: nodes.max(1),
            leases: leases::Leases::new(entries_max, nodes.max(1)),
            owed: Mutex::default(),
            shares: away::Shares::default(),
            ids: Mutex::default(),
            counts: Counts::default(),
        };
        // The first one stands.
        let _ = state.elsewhere.set(elsewhere);
    }

    /// How the store stands; `None` if the cells lie in the node.
    pub fn elsewhere(self) -> Option<ElsewhereView> {
        use std::sync::atomic::Ordering::Relaxed;
        let elsewhere = self.state().elsewhere.get()?;
        let counts = &elsewhere.counts;
        let owed = elsewhere.owed.lock();
        Some(ElsewhereView {
            store: elsewhere.store.view(),
            leased: counts.leased.load(Relaxed),
            denied: counts.denied.load(Relaxed),
            asked: counts.asked.load(Relaxed),
            owed: owed.len(),
            forgotten: owed.forgotten(),
        })
    }

    /// The store itself.
    pub fn store(self) -> Option<Arc<dyn QuotaStore>> {
        let elsewhere = self.state().elsewhere.get()?;
        Some(elsewhere.store.clone())
    }
}
