//! Quota cells in a shared [store](crate::quota_store), such as Redis, that several nodes
//! use.
//!
//! A take is decided at once if all of its cells are leased to this node, or if one of them was
//! denied a moment ago; otherwise the store is asked (`request`), and the caller waits as for credit
//! (`waiting_take`). Cells of units that listeners count stay local to each node. Everything else works
//! as without a store: limits, holds and ids belong to the node, and a hold ends here and is
//! settled in the store [later](unsent).
//!
//! Invariant: *all nodes together admit what the store has debited, plus what a limit grants while
//! the store is [unavailable](fallback)*; such grants are counted, reported, and debited later. Without
//! a store, the only cost is the check whether there is one.

mod admin;
mod cell_request;
mod complete;
mod fallback;
mod lease;
mod lease_size;
mod leases;
mod request;
mod start;
mod tend;
mod unsent;
mod view;
mod waiting_take;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use crate::quota_store::{QuotaStore, SharedStore};

pub use view::SharedStoreView;
pub(super) use waiting_take::RunningQuery;

/// Shared-store state; see the module docs.
pub(super) struct SharedCells {
    store: Arc<dyn QuotaStore>,
    /// Number of nodes that share the cells.
    nodes: u32,
    leases: leases::Leases,
    unsent: Mutex<unsent::UnsentChanges>,
    shares: fallback::Shares,
    /// Ids of takes that wait for the store's answer.
    ids: Mutex<BTreeSet<String>>,
    counts: Counts,
}

/// Counters since the node was started.
#[derive(Default)]
struct Counts {
    /// Takes decided locally from leases.
    leased: AtomicU64,
    /// Takes denied locally by a recent answer of the store.
    denied: AtomicU64,
    /// Takes that the store was asked about.
    asked: AtomicU64,
}

impl SharedCells {
    /// Returns the state of a node that has asked the store for nothing yet.
    pub(super) fn new(shared: SharedStore, entries_max: usize) -> Self {
        let nodes = shared.nodes.max(1);
        Self {
            store: shared.store,
            nodes,
            leases: leases::Leases::new(entries_max, nodes),
            unsent: Mutex::default(),
            shares: fallback::Shares::default(),
            ids: Mutex::default(),
            counts: Counts::default(),
        }
    }
}
