//! Holds: amounts that are reserved before the true cost is known.
//!
//! A hold ends at its deadline even if its holder disappears: the reserved amount is charged and
//! slots are released. Invariant: *a hold ends once.*

use std::collections::{BTreeMap, BTreeSet};

use crate::limit::{Kind, LimitId};
use crate::plan::Plan;
use crate::rules::Rules;

/// Identifies a hold by 128 random bits that cannot be guessed. Holds stored by an older version
/// have 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub u128);

/// A reservation; see the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The text of the subject.
    pub subject: Box<str>,
    /// The principal that took the hold and may settle it. Empty if the take was not authenticated:
    /// then the id is enough to settle.
    pub principal: Box<str>,
    /// The amounts taken, by limit.
    pub charges: Box<[Charge]>,
    /// The deadline at which the hold ends by itself, in nanoseconds since 1970-01-01 UTC.
    pub deadline_ns: u64,
}

/// The amount taken from one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The limit.
    pub limit: LimitId,
    /// The amount.
    pub count: u64,
    /// For a budget, the period and the count of resets at the take; an amount of another period is
    /// not given back. For slots in the shared store, the store's marker.
    pub period: u64,
    /// True if the amount was taken from the limit's shared overflow cell.
    pub is_overflow: bool,
}

/// The maximum number of holds is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many holds (limit {0} in this shard, quota.holds_max)")]
pub struct HoldsFull(pub usize);

/// All holds of a shard, by id and by deadline.
#[derive(Debug, Default)]
pub struct Holds {
    by_id: BTreeMap<HoldId, Hold>,
    by_deadline: BTreeSet<(u64, HoldId)>,
    count_max: usize,
}

impl Holds {
    /// Creates an empty set with room for `count_max` holds.
    pub fn new(count_max: usize) -> Self {
        Self {
            count_max,
            ..Self::default()
        }
    }

    /// Returns an error if there is no room for another hold.
    pub fn check_room(&self) -> Result<(), HoldsFull> {
        match self.by_id.len() < self.count_max {
            true => Ok(()),
            false => Err(HoldsFull(self.count_max)),
        }
    }

    /// Adds a hold, replacing one with the same id.
    pub fn insert(&mut self, id: HoldId, hold: Hold) {
        let deadline_ns = hold.deadline_ns;
        if let Some(old) = self.by_id.insert(id, hold) {
            self.by_deadline.remove(&(old.deadline_ns, id));
        }
        self.by_deadline.insert((deadline_ns, id));
    }

    /// Removes a hold and returns it.
    pub fn remove(&mut self, id: HoldId) -> Option<Hold> {
        let hold = self.by_id.remove(&id)?;
        self.by_deadline.remove(&(hold.deadline_ns, id));
        Some(hold)
    }

    /// Returns the hold with that id.
    pub fn get(&self, id: HoldId) -> Option<&Hold> {
        self.by_id.get(&id)
    }

    /// Removes and returns one hold whose deadline has passed.
    pub fn expire(&mut self, now_ns: u64) -> Option<(HoldId, Hold)> {
        let (deadline_ns, id) = *self.by_deadline.first()?;
        if deadline_ns > now_ns {
            return None;
        }
        self.remove(id).map(|hold| (id, hold))
    }

    /// Returns the earliest deadline.
    pub fn next_ns(&self) -> Option<u64> {
        self.by_deadline
            .first()
            .map(|(deadline_ns, _)| *deadline_ns)
    }

    /// Returns the number of holds.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether there are no holds.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Iterates over all holds, by id.
    pub fn iter(&self) -> impl Iterator<Item = (HoldId, &Hold)> {
        self.by_id.iter().map(|(id, hold)| (*id, hold))
    }
}

impl Plan {
    /// Returns the amounts that an admitted take took, by limit.
    pub fn charges(&self, rules: &Rules) -> Box<[Charge]> {
        let taken = self.steps.iter().filter(|step| step.shadowed.is_none());
        let charges = taken.filter_map(|step| {
            let (cell, kind) = step.now.as_ref()?;
            let is_bucket = matches!(kind, Kind::Bucket(_));
            Some(Charge {
                limit: rules.id(step.index),
                count: u64::try_from(step.count).ok()?,
                period: if is_bucket { 0 } else { cell.at },
                is_overflow: step.is_overflow,
            })
        });
        charges.collect()
    }
}
