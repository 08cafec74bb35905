//! Cells that lie elsewhere: in a store that several nodes share.
//!
//! It decides what it is handed by its own clock, each take as a whole. What a node has *leased* is
//! debited there already, so that what it decides by itself never admits more than there is. The
//! store keeps cells and nothing else: limits, overrides, factors, halts and holds are each node's
//! own, and what they make of a cell is said with every take.

use std::future::Future;
use std::pin::Pin;

use quota::{Kind, Prefix};

/// A cell, in words that any store can keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCell {
    /// Its name, as [`key`] makes it.
    pub key: String,
    /// How much there is now. Weight, factor and override are in it already; where it is another
    /// than last time, what was used stays used.
    pub kind: Kind,
    /// What is taken; less than nothing when it is given back.
    pub count: i64,
    /// Whether it denies, or only says so.
    pub is_enforced: bool,
    /// Of what is given back to a budget or to slots: [`RemoteStanding::mark`] of when it was taken.
    /// What was taken from a stretch that is over, or from slots that are free by themselves
    /// already, is not given back; nor is anything without a mark.
    pub mark: Option<u64>,
    /// Of slots that are taken: after how long they are free even if nobody gives them back.
    pub lasting_ns: u64,
}

/// What is done with cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// All of them agree, or nothing is taken from any.
    Take,
    /// Debited, or given back, whatever is there: the end of a hold. Passes.
    Force,
    /// Nothing: they are looked at. Passes.
    Look,
    /// Each becomes as a new one would be, less what is leased; slots that are held stay held.
    Reset,
    /// The counts are given once, and may lie above the capacity until they are taken.
    Grant,
}

/// Something that is done with cells as a whole, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTake {
    /// What.
    pub verb: Verb,
    /// Cells of one organisation, each once.
    pub cells: Vec<RemoteCell>,
}

/// What became of a take there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteDecision {
    /// The cell that will let it pass last, by its place in the take; `None` if it passed.
    pub denied_by: Option<usize>,
    /// In how many nanoseconds it would pass; `None` for nobody knows, or never.
    pub retry_after_ns: Option<u64>,
    /// How the cells stand then, in their order.
    pub cells: Vec<RemoteStanding>,
}

/// How a cell stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteStanding {
    /// What is left, rounded down; less than nothing is debt.
    pub have: i64,
    /// It had less than was wanted. Of a take that passed: it only says so, and nothing was taken
    /// from it, so that nothing is to be given back.
    pub is_short: bool,
    /// The stretch of a budget, or when slots are free by themselves. To be said when what was taken
    /// is given back.
    pub mark: u64,
    /// In how many nanoseconds everything is there again; `None` for nobody knows, or never.
    pub reset_after_ns: Option<u64>,
    /// When a bucket was taken from last, before this, in nanoseconds since 1970-01-01 UTC; `None`
    /// if it is as a new one.
    pub touched_ns: Option<u64>,
}

/// What was leased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Debited there, to be spent here; 0 if there was nothing.
    pub granted: u64,
    /// To be said when it is given back.
    pub mark: u64,
    /// How long it may be spent, in nanoseconds from when it was *asked for*: what comes later may
    /// not be spent, only given back.
    pub lasts_ns: u64,
    /// What is left there, rounded down.
    pub have: i64,
    /// In how many nanoseconds one more would be granted, if nothing was.
    pub retry_after_ns: Option<u64>,
}

/// A lease that is over: nothing of it is spent any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Which.
    pub lease: Lease,
    /// What of it was spent; the rest is given back.
    pub spent: u64,
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

/// An answer that comes in bounded time, whatever the store does. Where it is not waited for, what
/// was asked for may be done or not.
pub type Asking<T> = Pin<Box<dyn Future<Output = Result<T, Away>> + Send>>;

/// See the module's documentation.
pub trait QuotaStore: Send + Sync {
    /// Decides takes, one answer each, in order; they may be of several organisations.
    fn decide(&self, takes: Vec<RemoteTake>) -> Asking<Vec<RemoteDecision>>;

    /// Debits up to `want` of a bucket or a budget for this node, at most its share, and takes back
    /// the lease before. Of the cell the count says nothing. With `want` 0 it is only given back;
    /// what was leased and is never told of again is spent. Slots are not leased.
    fn lease(&self, cell: RemoteCell, want: u64, before: Option<Returned>) -> Asking<Lease>;

    /// Asks the server whether it is there, and for its version.
    fn probe(&self) -> Asking<String>;

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
    /// Leases that were asked for and answered.
    pub leases: u64,
    /// Attempts that failed.
    pub errors: u64,
    /// Why the last one did, until one succeeds.
    pub error: Option<String>,
}

/// The name of a limit's cell for a prefix: the same on every node that calls the limit so. Those of
/// one organisation begin alike, `telpher:{org}`, by which a cluster keeps them together. What a
/// cluster reads ends at the first `}`: one in a name is written as a space, which no name has.
pub fn key(limit: &str, prefix: Prefix<'_>) -> String {
    let org = prefix.name.split('/').next().unwrap_or_default();
    let rest = &prefix.name[org.len()..];
    let question = if prefix.run.is_empty() { "" } else { "?" };
    let org = org.replace('}', " ");
    format!("telpher:{{{org}}}{rest}{question}{} {limit}", prefix.run)
}

/// The beginning that a key has in common with those of all cells of its organisation.
pub fn org_of_key(key: &str) -> &str {
    let end = key.find('}').map_or(key.len(), |at| at + 1);
    &key[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_one_organisation_begin_alike_and_no_two_are_called_the_same() {
        let named = |name, run| key("agent", Prefix { name, run });
        assert_eq!(named("acme", ""), "telpher:{acme} agent");
        assert_eq!(named("acme/a/b", ""), "telpher:{acme}/a/b agent");
        assert_eq!(named("acme/a/b", "7"), "telpher:{acme}/a/b?7 agent");
        assert_eq!(named("}{/a", ""), "telpher:{ {}/a agent");
        assert_eq!(org_of_key(&named("acme/a/b", "7")), "telpher:{acme}");
    }
}
