//! The balance of one limit for one prefix, and its arithmetic in whole numbers.
//!
//! ```text
//! bucket   credit, in amount × period_ns; at, in the limit's own nanoseconds
//!          refilled by (own − at) × amount, up to capacity × period_ns; n costs n × period_ns
//! budget   spent; the number of the calendar period, and above its 32 bits how often the
//!          budget was reset in it: a take before a reset is not refunded after it
//! slots    in use
//! ```
//!
//! A refill of 10 per second adds 10 to the credit in each nanosecond, and one costs 1,000,000,000:
//! nothing is ever divided, so nothing is ever rounded. Negative credit is debt.

use crate::dial::Dial;
use crate::limit::{Bucket, Kind, LimitId};

/// Maximum debt; debt beyond it is dropped, because paying it would take longer than the age of the
/// universe.
const DEBT_MAX: i128 = 1 << 120;

/// Increment of `Cell::at` for one reset of a budget. The period number below it fits into 32 bits
/// even for minutes.
const RESET: u64 = 1 << 32;

/// The balance of one limit for one prefix; see the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Credit of a bucket, amount spent of a budget, or slots in use.
    pub(crate) amount: i128,
    /// For a bucket, the limit's own time at which `amount` was computed; for a budget, its period
    /// number and count of resets.
    pub(crate) at: u64,
    pub(crate) limit: LimitId,
    /// Number of warning thresholds that were already reported.
    pub(crate) warned: u8,
    /// True if an override may apply to this cell.
    pub(crate) is_overridden: bool,
    /// True if the cell differs from its last journaled record.
    pub(crate) is_dirty: bool,
}

/// The time at which a denied take would pass if no other take comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At that nanosecond, and not before.
    At(u64),
    /// At the start of the next budget period; retrying earlier is useless.
    Period(u64),
    /// When holders release slots.
    Release,
    /// Never.
    Never,
}

impl Cell {
    /// Creates a cell that nothing was taken from.
    pub fn full(limit: LimitId, kind: &Kind, dial: &Dial, now_ns: u64) -> Self {
        let (amount, at) = match *kind {
            Kind::Bucket(bucket) => (bucket.credit_max(), dial.own_ns(now_ns)),
            Kind::Budget { every, zone, .. } => (0, every.period(dial.calendar_ns(now_ns), zone)),
            Kind::Slots { .. } => (0, 0),
        };
        Self {
            amount,
            at,
            limit,
            warned: 0,
            is_overridden: false,
            is_dirty: false,
        }
    }

    /// Returns the limit that the cell belongs to.
    pub fn limit(&self) -> LimitId {
        self.limit
    }

    /// Adds the refill up to `now_ns`. A clock that stepped back adds nothing.
    pub(crate) fn accrue(&mut self, kind: &Kind, dial: &Dial, now_ns: u64) {
        match *kind {
            Kind::Bucket(bucket) => {
                let own_ns = dial.own_ns(now_ns);
                let elapsed = own_ns.saturating_sub(self.at);
                self.at = own_ns.max(self.at);
                let full = bucket.credit_max();
                if elapsed > 0 && self.amount < full {
                    let refilled = i128::from(elapsed) * i128::from(bucket.amount);
                    self.amount = self.amount.saturating_add(refilled).min(full);
                    if self.amount == full {
                        self.warned = 0;
                    }
                }
            }
            Kind::Budget { every, zone, .. } => {
                let period = every.period(dial.calendar_ns(now_ns), zone);
                if period > self.period_number() {
                    (self.amount, self.at, self.warned) = (0, period, 0);
                }
            }
            Kind::Slots { .. } => {}
        }
    }

    /// Returns the available amount, rounded down; negative for debt. The cell must be up to date.
    pub(crate) fn have(&self, kind: &Kind, dial: &Dial, now_ns: u64) -> i128 {
        match *kind {
            Kind::Bucket(bucket) => self.amount.div_euclid(i128::from(bucket.period_ns)),
            Kind::Budget { .. } | Kind::Slots { .. } => {
                i128::from(kind.capacity_by(dial.factor_at(now_ns))) - self.amount
            }
        }
    }

    /// Debits `count`; a negative count gives credit back. Never fails: an amount above the balance
    /// becomes debt.
    pub(crate) fn debit(&mut self, kind: &Kind, count: i128) {
        match *kind {
            Kind::Bucket(bucket) => {
                let credit = self.amount - count * i128::from(bucket.period_ns);
                let limit = self.amount.max(bucket.credit_max());
                self.amount = credit.clamp(-DEBT_MAX, limit);
            }
            Kind::Budget { .. } => {
                let least = self.amount.min(0);
                self.amount = (self.amount + count).clamp(least, DEBT_MAX);
            }
            Kind::Slots { .. } => self.amount = (self.amount + count).clamp(0, DEBT_MAX),
        }
    }

    /// Returns when `count` becomes available. The cell must be up to date.
    pub(crate) fn ready(&self, kind: &Kind, dial: &Dial, now_ns: u64, count: u64) -> When {
        if self.have(kind, dial, now_ns) >= i128::from(count) {
            return When::At(now_ns);
        }
        match *kind {
            Kind::Bucket(bucket) => {
                let missing = i128::from(count) * i128::from(bucket.period_ns) - self.amount;
                let own_ns = bucket
                    .time_to_refill(missing)
                    .and_then(|ns| self.at.checked_add(ns));
                let at_ns = own_ns.and_then(|own_ns| dial.clock_ns(own_ns));
                at_ns.map_or(When::Never, |at_ns| When::At(at_ns.max(now_ns)))
            }
            Kind::Budget {
                amount,
                every,
                zone,
            } => match dial.next_period_ns(every, self.period_number(), zone) {
                Some(at_ns) if count <= dial.factor_at(at_ns).of(amount) => When::Period(at_ns),
                _ => When::Never,
            },
            Kind::Slots { .. } => When::Release,
        }
    }

    /// Returns when the cell is full again if nothing more is taken; `None` if that cannot be
    /// known.
    pub(crate) fn reset_ns(&self, kind: &Kind, dial: &Dial, now_ns: u64) -> Option<u64> {
        match *kind {
            Kind::Bucket(bucket) => {
                let missing = bucket.credit_max() - self.amount;
                let own_ns = self.at.checked_add(bucket.time_to_refill(missing)?)?;
                dial.clock_ns(own_ns).map(|at_ns| at_ns.max(now_ns))
            }
            Kind::Budget { every, zone, .. } => {
                dial.next_period_ns(every, self.period_number(), zone)
            }
            Kind::Slots { .. } => (self.amount == 0).then_some(now_ns),
        }
    }

    /// Returns whether the cell equals a new one. The cell must be up to date.
    pub(crate) fn is_full(&self, kind: &Kind) -> bool {
        match *kind {
            Kind::Bucket(bucket) => self.amount == bucket.credit_max(),
            // A budget that was reset stays: a new cell would accept refunds of takes from before
            // the reset.
            Kind::Budget { .. } => self.amount == 0 && self.at < RESET,
            Kind::Slots { .. } => self.amount == 0,
        }
    }

    /// Returns the number of a budget's calendar period.
    fn period_number(&self) -> u64 {
        self.at % RESET
    }

    /// Moves a budget whose period lies in the future (the clock was ahead) into the current
    /// period, and keeps the amount spent. Returns whether the cell changed.
    pub(crate) fn clamp_period(&mut self, kind: &Kind, dial: &Dial, now_ns: u64) -> bool {
        let Kind::Budget { every, zone, .. } = *kind else {
            return false;
        };
        let period = every.period(dial.calendar_ns(now_ns), zone);
        let is_ahead = self.period_number() > period;
        if is_ahead {
            self.at = self.at - self.period_number() + period;
        }
        is_ahead
    }

    /// Converts the cell to a changed kind of the same limit. The amount used stays used, a raised
    /// capacity counts at once, and no credit is created. The cell must be up to date.
    pub(crate) fn reconfigure(&mut self, from: &Kind, to: &Kind, dial: &Dial, now_ns: u64) {
        match (*from, *to) {
            (Kind::Bucket(old), Kind::Bucket(new)) => {
                let used = old.credit_max() - self.amount;
                let used = rescale_up(used, old.period_ns, new.period_ns);
                let credit = new.credit_max().saturating_sub(used);
                self.amount = credit.clamp(-DEBT_MAX, new.credit_max());
            }
            (Kind::Budget { .. }, Kind::Budget { every, zone, .. }) => {
                self.at =
                    self.at - self.period_number() + every.period(dial.calendar_ns(now_ns), zone);
                self.amount = self.amount.max(0);
            }
            (Kind::Slots { .. }, Kind::Slots { .. }) => {}
            _ => {
                let full = Self::full(self.limit, to, dial, now_ns);
                (self.amount, self.at) = (full.amount, full.at);
            }
        }
    }

    /// Restores the balance of a new cell; slots that are held stay held. The cell must be up to
    /// date.
    pub(crate) fn refill(&mut self, kind: &Kind, dial: &Dial, now_ns: u64) {
        if !matches!(kind, Kind::Slots { .. }) {
            let full = Self::full(self.limit, kind, dial, now_ns);
            self.amount = full.amount;
            self.warned = 0;
        }
        if matches!(kind, Kind::Budget { .. }) {
            self.at = self.at.wrapping_add(RESET);
        }
    }

    /// Adds credit once. The balance may lie above the capacity until it is spent.
    pub(crate) fn grant(&mut self, kind: &Kind, count: u64) {
        match *kind {
            Kind::Bucket(bucket) => {
                let granted = i128::from(count) * i128::from(bucket.period_ns);
                self.amount = self.amount.saturating_add(granted).min(DEBT_MAX);
            }
            Kind::Budget { .. } => self.amount = (self.amount - i128::from(count)).max(-DEBT_MAX),
            Kind::Slots { .. } => {}
        }
    }

    /// Returns the used share of the capacity, in thousandths.
    pub(crate) fn used_share(&self, kind: &Kind, dial: &Dial, now_ns: u64) -> u16 {
        let capacity = i128::from(kind.capacity_by(dial.factor_at(now_ns)));
        let used = capacity - self.have(kind, dial, now_ns);
        match capacity {
            0 => 1_000,
            capacity => (used * 1_000 / capacity).clamp(0, 1_000) as u16,
        }
    }
}

impl Bucket {
    pub(crate) fn credit_max(&self) -> i128 {
        i128::from(self.capacity) * i128::from(self.period_ns)
    }

    /// Returns the own time in which that much credit is refilled, rounded up; `None` for never.
    fn time_to_refill(&self, credit: i128) -> Option<u64> {
        match (credit.max(0) as u128, self.amount) {
            (0, _) => Some(0),
            (_, 0) => None,
            (credit, amount) => u64::try_from(credit.div_ceil(u128::from(amount))).ok(),
        }
    }
}

/// Returns `value` × `to` ÷ `from`, rounded up. Intermediate values stay within 128 bits if the
/// result does.
fn rescale_up(value: i128, from: u64, to: u64) -> i128 {
    let (from, to) = (i128::from(from), i128::from(to));
    if from == to {
        return value;
    }
    let (whole, rest) = (value.div_euclid(from), value.rem_euclid(from));
    let part = (rest * to + from - 1) / from;
    whole.saturating_mul(to).saturating_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Every;
    use crate::dial::Factor;

    const SECOND: u64 = 1_000_000_000;

    fn bucket(capacity: u64, amount: u64) -> Kind {
        Kind::Bucket(Bucket {
            capacity,
            amount,
            period_ns: SECOND,
        })
    }

    fn at(now_ns: u64, kind: &Kind) -> (Cell, Dial) {
        let dial = Dial::new(Factor::ONE, 0);
        (Cell::full(LimitId(1), kind, &dial, now_ns), dial)
    }

    #[test]
    fn quota_cell_takes_32_bytes() {
        assert_eq!(size_of::<Cell>(), 32);
    }

    #[test]
    fn fractional_refill_rate_does_not_drift() {
        let kind = Kind::Bucket(Bucket {
            capacity: 10,
            amount: 1,
            period_ns: 3 * SECOND,
        });
        let (mut cell, dial) = at(0, &kind);
        cell.debit(&kind, 10);
        for step in 1..=3_000_000_u64 {
            cell.accrue(&kind, &dial, step * 7);
        }
        assert_eq!(cell.amount, 21_000_000);
        assert_eq!(
            cell.ready(&kind, &dial, 21_000_000, 1),
            When::At(3 * SECOND)
        );
    }

    #[test]
    fn a_changed_capacity_applies_at_once_and_debits_are_preserved() {
        let (old, new) = (bucket(100, 10), bucket(250, 1));
        let (mut cell, dial) = at(0, &old);
        cell.debit(&old, 80);
        cell.reconfigure(&old, &new, &dial, 0);
        assert_eq!(cell.have(&new, &dial, 0), 170);
        cell.reconfigure(&new, &bucket(50, 1), &dial, 0);
        assert_eq!(cell.have(&bucket(50, 1), &dial, 0), -30);
    }

    #[test]
    fn a_changed_period_creates_no_credit() {
        let old = bucket(3, 1);
        let new = Kind::Bucket(Bucket {
            capacity: 3,
            amount: 1,
            period_ns: 7,
        });
        let (mut cell, dial) = at(0, &old);
        cell.debit(&old, 3);
        cell.accrue(&old, &dial, SECOND / 2);
        cell.reconfigure(&old, &new, &dial, SECOND / 2);
        assert_eq!(cell.amount, 3, "half of 7, rounded down");
    }

    #[test]
    fn a_grant_may_exceed_the_capacity_until_taken() {
        let kind = bucket(10, 1);
        let (mut cell, dial) = at(0, &kind);
        cell.grant(&kind, 5);
        cell.accrue(&kind, &dial, 100 * SECOND);
        assert_eq!(cell.have(&kind, &dial, 100 * SECOND), 15);
        cell.debit(&kind, 8);
        cell.accrue(&kind, &dial, 200 * SECOND);
        assert_eq!(cell.have(&kind, &dial, 200 * SECOND), 10);
    }

    #[test]
    fn a_new_budget_period_starts_full_and_clears_debt() {
        let kind = Kind::Budget {
            amount: 5,
            every: Every::Minute,
            zone: crate::Zone::UTC,
        };
        let (mut cell, dial) = at(0, &kind);
        cell.debit(&kind, 9);
        assert_eq!(cell.have(&kind, &dial, 0), -4);
        assert_eq!(cell.ready(&kind, &dial, 0, 1), When::Period(60 * SECOND));
        cell.accrue(&kind, &dial, 60 * SECOND);
        assert_eq!(cell.have(&kind, &dial, 60 * SECOND), 5);
    }

    #[test]
    fn scales_are_changed_exactly_even_at_the_bounds() {
        use crate::limit::{AMOUNT_MAX, PERIOD_NS_MAX};
        let value = i128::from(AMOUNT_MAX) * i128::from(PERIOD_NS_MAX);
        assert_eq!(rescale_up(value, PERIOD_NS_MAX, 1), i128::from(AMOUNT_MAX));
        assert_eq!(rescale_up(i128::from(AMOUNT_MAX), 1, PERIOD_NS_MAX), value);
        assert_eq!(rescale_up(1, 3, 1), 1);
        assert_eq!(rescale_up(-1, 3, 1), 0);
    }
}
