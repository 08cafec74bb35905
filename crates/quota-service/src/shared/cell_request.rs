//! An owned request for credit of a cell in the shared store.

use quota::{Key, Kind, LimitId, Part, Prefix, Rules};

use crate::quota_store::{self, RemoteCell};

/// A request for credit of one cell.
#[derive(Clone, Debug)]
pub(super) struct CellRequest {
    /// The step of the plan.
    pub(super) step: usize,
    pub(super) hash: u64,
    pub(super) limit: LimitId,
    pub(super) name: Box<str>,
    pub(super) run: Box<str>,
    pub(super) cell: RemoteCell,
}

impl CellRequest {
    /// Creates a request; slots that are never returned are free after `lasting_ns`.
    pub(super) fn new(step: usize, part: &Part<'_>, rules: &Rules, lasting_ns: u64) -> Self {
        Self {
            step,
            hash: part.hash,
            limit: part.key.limit,
            name: part.key.prefix.name.into(),
            run: part.key.prefix.run.into(),
            cell: cell(part, rules, lasting_ns),
        }
    }

    pub(super) fn key(&self) -> Key<'_> {
        let (name, run) = (&*self.name, &*self.run);
        Key {
            limit: self.limit,
            prefix: Prefix { name, run },
        }
    }

    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.cell.count).unwrap_or(0)
    }

    /// Returns whether the cell may be leased. Slots are not: nothing would return them.
    pub(super) fn is_leased(&self) -> bool {
        !matches!(self.cell.kind, Kind::Slots { .. })
    }
}

/// Converts a cell to the store's form.
pub(super) fn cell(part: &Part<'_>, rules: &Rules, lasting_ns: u64) -> RemoteCell {
    let bounds = i128::from(i64::MIN)..=i128::from(i64::MAX);
    RemoteCell {
        key: quota_store::key(&rules.limit(part.index).name, part.key.prefix),
        kind: part.kind,
        count: part.count.clamp(*bounds.start(), *bounds.end()) as i64,
        is_enforced: part.is_enforced,
        mark: None,
        lasting_ns,
    }
}
