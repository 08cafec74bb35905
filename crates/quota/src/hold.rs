//! What was taken before it was known what it would cost.
//!
//! A hold ends by its own deadline whatever becomes of its holder: then what it reserved is charged,
//! and slots are free again. Invariant: *a hold ends once.*

use std::collections::{BTreeMap, BTreeSet};

use crate::limit::{Kind, LimitId};
use crate::plan::Plan;
use crate::rules::Rules;

/// Names a hold: 128 bits that nobody can guess. Those of holds that were stored by an older version
/// have 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub u128);

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Who: a subject's text.
    pub subject: Box<str>,
    /// The principal that took it and may settle it; empty if none was proven, and then the id is
    /// enough.
    pub principal: Box<str>,
    /// What was taken from which limit.
    pub charges: Box<[Charge]>,
    /// When it ends by itself, in nanoseconds since 1970-01-01 UTC.
    pub deadline_ns: u64,
}

/// What was taken from one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The limit.
    pub limit: LimitId,
    /// How much.
    pub count: u64,
    /// In which stretch of the calendar, of a budget, and after how many resets; what is over is not
    /// given back. Of slots that lie elsewhere, what their store says of them.
    pub period: u64,
    /// From the cell that subjects share there is no room for.
    pub is_overflow: bool,
}

/// There are as many holds as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {0} holds here, and no more are kept")]
pub struct HoldsFull(pub usize);

/// Holds, by name and by deadline.
#[derive(Debug, Default)]
pub struct Holds {
    by_id: BTreeMap<HoldId, Hold>,
    by_deadline: BTreeSet<(u64, HoldId)>,
    count_max: usize,
}

impl Holds {
    /// With room for so many.
    pub fn new(count_max: usize) -> Self {
        Self {
            count_max,
            ..Self::default()
        }
    }

    /// How many there may be.
    pub fn set_count_max(&mut self, count_max: usize) {
        self.count_max = count_max;
    }

    /// Whether there is room for another.
    pub fn check_room(&self) -> Result<(), HoldsFull> {
        match self.by_id.len() < self.count_max {
            true => Ok(()),
            false => Err(HoldsFull(self.count_max)),
        }
    }

    /// Adds one; one of that name is replaced.
    pub fn insert(&mut self, id: HoldId, hold: Hold) {
        let deadline_ns = hold.deadline_ns;
        if let Some(old) = self.by_id.insert(id, hold) {
            self.by_deadline.remove(&(old.deadline_ns, id));
        }
        self.by_deadline.insert((deadline_ns, id));
    }

    /// Ends one.
    pub fn remove(&mut self, id: HoldId) -> Option<Hold> {
        let hold = self.by_id.remove(&id)?;
        self.by_deadline.remove(&(hold.deadline_ns, id));
        Some(hold)
    }

    /// The one of that name.
    pub fn get(&self, id: HoldId) -> Option<&Hold> {
        self.by_id.get(&id)
    }

    /// Ends one whose deadline is over.
    pub fn expire(&mut self, now_ns: u64) -> Option<(HoldId, Hold)> {
        let (deadline_ns, id) = *self.by_deadline.first()?;
        if deadline_ns > now_ns {
            return None;
        }
        self.remove(id).map(|hold| (id, hold))
    }

    /// When the next one ends by itself.
    pub fn next_ns(&self) -> Option<u64> {
        self.by_deadline
            .first()
            .map(|(deadline_ns, _)| *deadline_ns)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Every one, by name.
    pub fn iter(&self) -> impl Iterator<Item = (HoldId, &Hold)> {
        self.by_id.iter().map(|(id, hold)| (*id, hold))
    }
}

impl Plan {
    /// What an admitted take took.
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
