//! What is wanted of a cell that lies elsewhere, in words that outlive the take's.

use quota::{Key, Kind, LimitId, Part, Prefix, Rules};

use crate::ports::quota_store::{self, RemoteCell};

/// What is wanted of one cell.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Which step of the plan.
    pub(super) step: usize,
    pub(super) hash: u64,
    pub(super) limit: LimitId,
    pub(super) name: Box<str>,
    pub(super) run: Box<str>,
    pub(super) cell: RemoteCell,
}

impl Wanted {
    /// Slots that nobody gives back are free after `lasting_ns`.
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

    /// Whether a node may decide about it by itself: nobody would give slots back.
    pub(super) fn is_leased(&self) -> bool {
        !matches!(self.cell.kind, Kind::Slots { .. })
    }
}

/// A cell as the store is told of it.
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
