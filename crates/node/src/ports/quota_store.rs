//! Cells that lie elsewhere: in a store that several nodes share.
//!
//! It decides what it is handed by its own clock, each take as a whole. What a node has *leased* is
//! debited there already, so that what it decides by itself never admits more than there is.

use std::future::Future;
use std::pin::Pin;

/// A cell, in words that any store can keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCell {
    /// Its name; those of one organisation begin with `{org}`, and lie together.
    pub key: String,
    /// How much there is. A bucket's refill is multiplied by the limit's factor and weight already.
    pub kind: quota::Kind,
    /// What is taken; less than nothing when it is given back.
    pub count: i64,
    /// Whether it denies, or only says so.
    pub is_enforced: bool,
}

/// A take: all of its cells agree, or nothing is taken from any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTake {
    /// Of one organisation.
    pub cells: Vec<RemoteCell>,
    /// Debited whatever is there: the end of a hold.
    pub is_forced: bool,
}

/// What became of a take there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteDecision {
    /// The cell that will let it pass last, by its place in the take; `None` if it passed.
    pub denied_by: Option<usize>,
    /// What is left in each cell, rounded down.
    pub have: Vec<i64>,
    /// In how many nanoseconds it would pass; `None` for nobody knows, or never.
    pub retry_after_ns: Option<u64>,
}

/// What was leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Debited there, to be spent here; 0 if there was nothing.
    pub granted: u64,
    /// How long it is this node's, in nanoseconds from when it was asked for. What is not given back
    /// by then is spent.
    pub lasts_ns: u64,
    /// What is left there, rounded down.
    pub have: i64,
    /// In how many nanoseconds one more would be granted, if nothing was.
    pub retry_after_ns: Option<u64>,
}

/// The store cannot be asked now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Away {
    /// Whether what was asked for may have been done.
    pub may_be_done: bool,
    /// For people.
    pub reason: String,
}

/// An answer that comes in bounded time, whatever the store does.
pub type Asking<T> = Pin<Box<dyn Future<Output = Result<T, Away>> + Send>>;

/// See the module's documentation.
pub trait QuotaStore: Send + Sync {
    /// Decides takes, one answer each, in order; they may be of several organisations.
    fn decide(&self, takes: Vec<RemoteTake>) -> Asking<Vec<RemoteDecision>>;

    /// Debits up to `want` of a cell for this node.
    fn lease(&self, cell: RemoteCell, want: u64) -> Asking<Lease>;

    /// Gives back what was leased and not spent; what comes too late is forgotten.
    fn give_back(&self, cell: RemoteCell, unspent: u64) -> Asking<()>;

    /// How it stands.
    fn view(&self) -> QuotaStoreView;
}

/// How the store stands, and what was done since the node was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaStoreView {
    /// Whether it answered last time.
    pub is_connected: bool,
    /// Takes that it decided.
    pub decided: u64,
    /// Leases that it granted.
    pub leases: u64,
    /// Attempts that failed.
    pub errors: u64,
    /// Why the last one did, until one succeeds.
    pub error: Option<String>,
}
