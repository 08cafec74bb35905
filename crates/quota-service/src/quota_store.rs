//! The port to the shared store of quota cells, which several nodes use.
//!
//! The store decides each take as a whole, by its own clock. A *lease* of a node is already debited
//! in the store, so that local decisions never admit more than the limit. The store contains cells
//! only. Limits, overrides, factors, halts and holds belong to each node, which sends their effect
//! on a cell with every take.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use quota::{Kind, Prefix};

/// A cell, in a form that any store can handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCell {
    /// The cell's key, as returned by [`key`].
    pub key: String,
    /// The current capacity and refill, with weight, factor and override applied. If they differ
    /// from the last request, the amount used stays used.
    pub kind: Kind,
    /// The amount to take; negative to give back.
    pub count: i64,
    /// True if the limit denies; false in shadow mode.
    pub is_enforced: bool,
    /// For an amount given back to a budget or slots: the [`RemoteCellState::mark`] of its take. An
    /// amount from a past period, from slots that are already released, or without a mark is not
    /// given back.
    pub mark: Option<u64>,
    /// For slots: the time after which they are released automatically, in nanoseconds.
    pub lasting_ns: u64,
}

/// An operation on cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Debits all cells, or none if one of them denies.
    Take,
    /// Debits or gives back regardless of the balance, at the end of a hold. Always passes.
    Force,
    /// Reads the cells. Always passes.
    Look,
    /// Resets each cell to the state of a new one, less its leases; slots that are held stay held.
    Reset,
    /// Grants the counts once; the balance may lie above the capacity until it is spent.
    Grant,
}

/// An atomic operation on cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTake {
    /// The operation.
    pub verb: Verb,
    /// The cells, of one organisation, each once.
    pub cells: Vec<RemoteCell>,
}

/// The store's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteDecision {
    /// The index of the cell that admits the take last; `None` if it passed.
    pub denied_by: Option<usize>,
    /// Nanoseconds until the take would pass; `None` for never or unknown.
    pub retry_after_ns: Option<u64>,
    /// The resulting states of the cells, in order.
    pub cells: Vec<RemoteCellState>,
}

/// The state of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteCellState {
    /// The available amount, rounded down; negative for debt.
    pub have: i64,
    /// True if the cell had less than requested. If the take passed, the limit is in shadow mode:
    /// nothing was taken from the cell, and nothing must be given back.
    pub is_short: bool,
    /// The period of a budget, or the time at which slots are released automatically. To be
    /// presented when the amount is given back.
    pub mark: u64,
    /// Nanoseconds until the cell is full again; `None` for never or unknown.
    pub reset_after_ns: Option<u64>,
    /// The last take from a bucket before this one, in nanoseconds since 1970-01-01 UTC; `None` if
    /// the cell equals a new one.
    pub touched_ns: Option<u64>,
}

/// A lease: credit debited in the store in advance, for local decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The leased amount; 0 if there was none.
    pub granted: u64,
    /// The mark to present when the lease is returned.
    pub mark: u64,
    /// The validity in nanoseconds since the *request*. An answer that arrives later must not be
    /// spent, only returned.
    pub lasts_ns: u64,
    /// The available amount left in the store, rounded down.
    pub have: i64,
    /// Nanoseconds until another lease would be granted, if none was.
    pub retry_after_ns: Option<u64>,
}

/// A lease that ended and is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnedLease {
    /// The lease.
    pub lease: Lease,
    /// The spent amount; the rest is given back.
    pub spent: u64,
}

/// The store is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct StoreUnavailable {
    /// True if the requested operation may have been executed.
    pub may_be_done: bool,
    /// The reason, for display.
    pub reason: String,
}

/// The result of a request, within bounded time. If it is dropped, the operation may be executed or
/// not.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreUnavailable>> + Send>>;

/// A shared store of quota cells.
pub trait QuotaStore: Send + Sync {
    /// Decides takes and returns one decision each, in order. The takes may belong to several
    /// organisations.
    fn decide(&self, takes: Vec<RemoteTake>) -> StoreFuture<Vec<RemoteDecision>>;

    /// Debits up to `want` of a bucket or a budget for this node, at most its share, and takes back
    /// the lease before. The count of the cell is ignored. With `want` 0 the lease is only
    /// returned. A lease that is never returned counts as spent. Slots cannot be leased.
    fn lease(
        &self,
        cell: RemoteCell,
        want: u64,
        before: Option<ReturnedLease>,
    ) -> StoreFuture<Lease>;

    /// Checks that the server responds, and returns its version.
    fn probe(&self) -> StoreFuture<String>;

    /// Returns the store's state.
    fn view(&self) -> QuotaStoreView;
}

/// A store, and the number of nodes that use it.
pub struct SharedStore {
    /// The store.
    pub store: Arc<dyn QuotaStore>,
    /// Number of nodes that share it, at least 1.
    pub nodes: u32,
}

/// The store's state, and its statistics since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaStoreView {
    /// True if the last request succeeded.
    pub is_connected: bool,
    /// Number of takes that the store decided.
    pub decided: u64,
    /// Number of leases requested and answered.
    pub leases: u64,
    /// Number of failed attempts.
    pub errors: u64,
    /// The error of the last attempt; `None` if it succeeded.
    pub error: Option<String>,
}

/// Returns the key of a limit's cell for a prefix, which is the same on every node with a limit of
/// that name. Keys of one organisation begin with `telpher:{org}`, by which a Redis cluster keeps
/// them on one node. A cluster reads up to the first `}`, so a `}` in a name is written as a space,
/// which no name contains.
pub fn key(limit: &str, prefix: Prefix<'_>) -> String {
    let org = prefix.name.split('/').next().unwrap_or_default();
    let rest = &prefix.name[org.len()..];
    let question = if prefix.run.is_empty() { "" } else { "?" };
    let org = org.replace('}', " ");
    format!("telpher:{{{org}}}{rest}{question}{} {limit}", prefix.run)
}

/// Returns the common beginning of the keys of an organisation's cells.
pub fn org_of_key(key: &str) -> &str {
    let end = key.find('}').map_or(key.len(), |at| at + 1);
    &key[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_organisation_share_a_prefix_and_are_unique() {
        let named = |name, run| key("agent", Prefix { name, run });
        assert_eq!(named("acme", ""), "telpher:{acme} agent");
        assert_eq!(named("acme/a/b", ""), "telpher:{acme}/a/b agent");
        assert_eq!(named("acme/a/b", "7"), "telpher:{acme}/a/b?7 agent");
        assert_eq!(named("}{/a", ""), "telpher:{ {}/a agent");
        assert_eq!(org_of_key(&named("acme/a/b", "7")), "telpher:{acme}");
    }
}
