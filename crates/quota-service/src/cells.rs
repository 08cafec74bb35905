//! Shards of the cells, each behind a lock, with the state of whole subjects.

use parking_lot::MutexGuard;
use quota::{Holds, Recent, Table};

use super::Options;
use super::outcome::HoldGrant;
use super::usage::spends::Spends;

/// Number of shards of the cells.
pub(super) const SHARDS: u16 = 64;

/// A shard of the cells, and of the state of whole subjects.
pub(crate) struct Shard {
    pub(crate) table: Table,
    pub(crate) holds: Holds,
    /// Recent takes by subject and id.
    pub(crate) recent: Recent<RecentTake>,
    /// Records of started and ended holds that are not in the journal yet.
    pub(crate) unwritten: Vec<(u8, Vec<u8>)>,
    /// Costs of takes since usage was last collected. Any shard may count a take.
    pub(crate) spends: Spends,
}

/// An admitted take with an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentTake {
    pub(crate) hold: Option<HoldGrant>,
    /// Digest of its costs, to compare a repeated take; 0 if unknown.
    pub(crate) cost_digest: u64,
}

/// A locked shard; the engine accesses its table.
pub(crate) struct LockedShard<'a>(pub(crate) MutexGuard<'a, Shard>);

impl std::ops::Deref for LockedShard<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0.table
    }
}

impl std::ops::DerefMut for LockedShard<'_> {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.0.table
    }
}

/// Returns one shard's part of a total.
pub(super) fn share(count: usize) -> usize {
    count.div_ceil(usize::from(SHARDS)).max(1)
}

pub(super) fn recent(options: &Options) -> Recent<RecentTake> {
    let window_ns = u64::try_from(options.id_window.as_nanos()).unwrap_or(u64::MAX);
    Recent::new(share(options.ids_max), window_ns)
}
