//! Plans whose cells lie in a shared store (Redis) that decides with its own copy of the
//! arithmetic.
//!
//! A [`Part`] describes one cell to the store: its key, its capacity and refill with weight, factor
//! and override applied, and the requested amount. The store's answers are [entered](Plan::tell)
//! into the plan, so that balances and charges are computed as for local cells.

use crate::admin::Override;
use crate::cell::{Cell, When};
use crate::decide::{Decision, Refused};
use crate::dial::Factor;
use crate::key::{Key, Seed};
use crate::limit::{Bucket, Kind, Mode};
use crate::plan::{Plan, Step};
use crate::rules::{Rules, stored_prefix};
use crate::subject::{Prefix, Subject};

/// A cell of a plan, as a request to the shared store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The index of the limit in the rules.
    pub index: usize,
    /// The cell's key.
    pub key: Key<'a>,
    /// A seeded hash of the key that clients cannot predict.
    pub hash: u64,
    /// The capacity and the refill, with weight, factor and override applied.
    pub kind: Kind,
    /// The amount to take; negative to give back.
    pub count: i128,
    /// True if the limit denies; false in shadow mode.
    pub is_enforced: bool,
}

/// The shared store's answer for one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreAnswer {
    /// The available amount, rounded down.
    pub have: i128,
    /// For a budget or slots, the marker to present when the amount is given back; `None` to use
    /// the period of the clock.
    pub mark: Option<u64>,
    /// The last take from a bucket, in nanoseconds since 1970-01-01 UTC.
    pub touched_ns: Option<u64>,
    /// True if a limit in shadow mode had too little, so that nothing was taken from it.
    pub is_shadowed: bool,
}

impl Rules {
    /// Checks whether a take can be refused without asking the store: its subject is halted, or it
    /// exceeds a capacity.
    pub fn turn_down(
        &self,
        plan: &Plan,
        subject: &Subject<'_>,
        now_ns: u64,
    ) -> Result<(), Decision> {
        if let Some((prefix, halt)) = self.halted(subject) {
            return Err(Decision::Halted {
                prefix: prefix.into(),
                reason: halt.reason.clone(),
            });
        }
        let above = plan.parts(self, subject, now_ns).find_map(|part| {
            let (capacity, need) = (part.kind.capacity(), u64::try_from(part.count).ok()?);
            let is_above = part.is_enforced && need > capacity && capacity > 0;
            is_above.then_some(Refused::AboveCapacity {
                limit: part.key.limit,
                capacity,
                need,
            })
        });
        above.map_or(Ok(()), |refused| Err(Decision::Refused(refused)))
    }

    /// Returns the part for `count` of the cell with that key.
    pub fn part<'a>(&self, key: Key<'a>, count: i128, now_ns: u64) -> Option<Part<'a>> {
        let index = self.policies.index(key.limit)?;
        let hash = Seed::of_limit(self.seed.hash(key.prefix), key.limit);
        Some(self.part_of(index, key, hash, count, now_ns))
    }

    fn part_of<'a>(
        &self,
        index: usize,
        key: Key<'a>,
        hash: u64,
        count: i128,
        now_ns: u64,
    ) -> Part<'a> {
        let factor = self.dial(index).factor_at(now_ns);
        Part {
            index,
            key,
            hash,
            kind: self
                .current_kind(index, key.prefix, now_ns)
                .by(factor)
                .without_named_zone(self.dial(index).calendar_ns(now_ns)),
            count,
            is_enforced: self.limit(index).mode == Mode::Enforce,
        }
    }

    /// Returns the kind of a cell with its override applied, before any factor.
    fn current_kind(&self, index: usize, prefix: Prefix<'_>, now_ns: u64) -> Kind {
        let base = *self.kind(index);
        let change = self.current_override(index, prefix, now_ns);
        change.map_or(base, |change| change.kind(base))
    }

    /// Returns whether an override applies to the cell.
    pub fn is_overridden(&self, part: &Part<'_>, now_ns: u64) -> bool {
        let change = self.current_override(part.index, part.key.prefix, now_ns);
        change.is_some()
    }

    fn current_override(&self, index: usize, prefix: Prefix<'_>, now_ns: u64) -> Option<&Override> {
        if self.overrides.is_empty() {
            return None;
        }
        let change = self.overrides.get(&(self.id(index), stored_prefix(prefix)));
        change.filter(|change| now_ns < change.until_ns)
    }
}

impl Plan {
    /// Returns the cells in the order of the steps.
    pub fn parts<'p, 'a: 'p>(
        &'p self,
        rules: &'p Rules,
        subject: &Subject<'a>,
        now_ns: u64,
    ) -> impl Iterator<Item = Part<'a>> + Clone {
        let subject = *subject;
        self.steps.iter().map(move |step| {
            let key = step.key(rules, &subject);
            rules.part_of(step.index, key, step.hash, step.count, now_ns)
        })
    }

    /// Enters the store's answer for the cell of a step.
    pub fn tell(
        &mut self,
        rules: &Rules,
        subject: &Subject<'_>,
        number: usize,
        told: StoreAnswer,
        now_ns: u64,
    ) {
        let Some(step) = self.steps.get_mut(number) else {
            return;
        };
        let dial = rules.dial(step.index);
        step.now = Some(cell_from_answer(rules, step, subject, told, now_ns));
        step.shadowed = told.is_shadowed.then_some(When::Never);
        step.touched = told.touched_ns.map(|at_ns| dial.own_ns(at_ns));
        step.warned = None;
    }
}

/// Builds a cell with the balance that the store reported. The store determines the calendar
/// period.
fn cell_from_answer(
    rules: &Rules,
    step: &Step,
    subject: &Subject<'_>,
    StoreAnswer { have, mark, .. }: StoreAnswer,
    now_ns: u64,
) -> (Cell, Kind) {
    let (key, dial) = (step.key(rules, subject), rules.dial(step.index));
    let kind = rules.current_kind(step.index, key.prefix, now_ns);
    let mut cell = Cell::full(key.limit, &kind, dial, now_ns);
    cell.amount = match kind {
        Kind::Bucket(bucket) => have.saturating_mul(i128::from(bucket.period_ns)),
        Kind::Budget { .. } | Kind::Slots { .. } => {
            cell.at = mark.unwrap_or(cell.at);
            i128::from(kind.capacity_by(dial.factor_at(now_ns))).saturating_sub(have)
        }
    };
    (cell, kind)
}

impl Bucket {
    /// Returns the bucket with its refill multiplied by a factor. If that does not fit into 64
    /// bits, the refill is slower by less than one part in 2^62.
    fn by(self, factor: Factor) -> Self {
        let (numerator, denominator) = factor.parts();
        if numerator == denominator {
            return self;
        }
        let mut amount = u128::from(self.amount) * u128::from(numerator);
        let mut period_ns = u128::from(self.period_ns) * u128::from(denominator);
        let common = common_divisor(amount, period_ns).max(1);
        (amount, period_ns) = (amount / common, period_ns / common);
        while amount.max(period_ns) > u128::from(u64::MAX) {
            (amount, period_ns) = (amount / 2, period_ns.div_ceil(2));
        }
        Self {
            capacity: self.capacity,
            amount: amount as u64,
            period_ns: period_ns as u64,
        }
    }
}

impl Kind {
    /// Returns the kind with the factor applied.
    fn by(self, factor: Factor) -> Self {
        match self {
            Self::Bucket(bucket) => Self::Bucket(bucket.by(factor)),
            Self::Budget {
                amount,
                every,
                zone,
            } => Self::Budget {
                amount: factor.of(amount),
                every,
                zone,
            },
            Self::Slots { capacity } => Self::Slots {
                capacity: factor.of(capacity),
            },
        }
    }
}

impl Kind {
    /// Returns the kind with its time zone in a form for a store without a time zone database.
    fn without_named_zone(self, calendar_ns: u64) -> Self {
        match self {
            Self::Budget {
                amount,
                every,
                zone,
            } => Self::Budget {
                amount,
                every,
                zone: every.zone_without_database(calendar_ns, zone),
            },
            other => other,
        }
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
