//! The factor on a limit's refill, which can be changed at any time without touching cells.
//!
//! Cells store the limit's *own time* instead of clock time. Own time passes faster or slower than
//! the clock, by the factor. A change of the factor therefore touches no cell: a cell's next refill
//! covers all of the own time that passed since its last one, whatever the factor was meanwhile. At
//! each change, own time is rounded down by less than a nanosecond.

use crate::calendar::Every;
use crate::zone::Zone;

/// A ratio of two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    numerator: u32,
    denominator: u32,
}

/// Two numbers that are no valid factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid factor: use a ratio of whole numbers up to {PART_MAX} that is at most {RATIO_MAX}"
)]
pub struct FactorError;

const PART_MAX: u32 = 1_000_000;
const RATIO_MAX: u32 = 1_000;

impl Factor {
    /// The factor 1.
    pub const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// Returns `numerator` ÷ `denominator`.
    pub fn new(numerator: u32, denominator: u32) -> Result<Self, FactorError> {
        let is_valid = denominator > 0
            && numerator.max(denominator) <= PART_MAX
            && numerator / denominator <= RATIO_MAX;
        match is_valid {
            true if numerator == denominator => Ok(Self::ONE),
            true => Ok(Self {
                numerator,
                denominator,
            }),
            false => Err(FactorError),
        }
    }

    /// Returns the numerator and the denominator.
    pub fn parts(self) -> (u32, u32) {
        (self.numerator, self.denominator)
    }

    /// Returns whether the factor is at most `other`.
    pub fn is_at_most(self, other: Self) -> bool {
        let left = u64::from(self.numerator) * u64::from(other.denominator);
        left <= u64::from(other.numerator) * u64::from(self.denominator)
    }

    /// Returns `amount` times the factor, rounded down.
    pub fn of(self, amount: u64) -> u64 {
        self.passed(amount)
    }

    /// Returns the own time that passes in `ns`, rounded down.
    fn passed(self, ns: u64) -> u64 {
        if self.numerator == self.denominator {
            return ns;
        }
        let passed = u128::from(ns) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(passed).unwrap_or(u64::MAX)
    }

    /// Returns the shortest clock time in which that much own time passes; `None` for never.
    fn time_for(self, own_ns: u64) -> Option<u64> {
        match (own_ns, self.numerator) {
            (0, _) => Some(0),
            (_, 0) => None,
            (own_ns, numerator) if numerator == self.denominator => Some(own_ns),
            (own_ns, numerator) => {
                let product = u128::from(own_ns) * u128::from(self.denominator);
                u64::try_from(product.div_ceil(u128::from(numerator))).ok()
            }
        }
    }
}

impl Default for Factor {
    fn default() -> Self {
        Self::ONE
    }
}

/// The course of a limit's own time: by `factor` from a moment on, and by another factor from a
/// later moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dial {
    pub(crate) anchor_ns: u64,
    pub(crate) anchor_own_ns: u64,
    pub(crate) factor: Factor,
    pub(crate) then: Option<(u64, Factor)>,
    /// Offset of the wall clock from the node's clock, in nanoseconds, after steps of the wall
    /// clock.
    pub(crate) calendar_shift_ns: i64,
}

impl Dial {
    /// Creates a dial whose own time equals the clock at `now_ns` and advances by `factor` from
    /// then on.
    pub fn new(factor: Factor, now_ns: u64) -> Self {
        let anchor_ns = if factor == Factor::ONE { 0 } else { now_ns };
        Self {
            anchor_ns,
            anchor_own_ns: anchor_ns,
            factor,
            then: None,
            calendar_shift_ns: 0,
        }
    }

    /// Returns the dial with `factor` from `now_ns` on, and the factor of `then` from its moment
    /// on.
    pub fn turned(self, now_ns: u64, factor: Factor, then: Option<(u64, Factor)>) -> Self {
        Self {
            anchor_ns: now_ns.max(self.anchor_ns),
            anchor_own_ns: self.own_ns(now_ns),
            factor,
            then: then.filter(|(until_ns, _)| *until_ns > now_ns),
            calendar_shift_ns: self.calendar_shift_ns,
        }
    }

    /// Returns the wall clock time, for calendars: the node's clock does not follow steps of the
    /// wall clock.
    pub(crate) fn calendar_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add_signed(self.calendar_shift_ns)
    }

    /// Returns when the period after `period` begins, by the node's clock.
    pub(crate) fn next_period_ns(&self, every: Every, period: u64, zone: Zone) -> Option<u64> {
        let at_ns = every.begin_ns(period + 1, zone)?;
        Some(at_ns.saturating_add_signed(self.calendar_shift_ns.saturating_neg()))
    }

    /// Returns the factor in force.
    pub fn factor_at(&self, now_ns: u64) -> Factor {
        match self.then {
            Some((until_ns, then)) if now_ns >= until_ns => then,
            _ => self.factor,
        }
    }

    /// Returns the limit's own time; it never steps back.
    pub fn own_ns(&self, now_ns: u64) -> u64 {
        let Some((until_ns, then)) = self.then.filter(|(until_ns, _)| now_ns > *until_ns) else {
            let passed = self.factor.passed(now_ns.saturating_sub(self.anchor_ns));
            return self.anchor_own_ns.saturating_add(passed);
        };
        let first = self.factor.passed(until_ns.saturating_sub(self.anchor_ns));
        let second = then.passed(now_ns - until_ns.max(self.anchor_ns));
        self.anchor_own_ns
            .saturating_add(first)
            .saturating_add(second)
    }

    /// Returns the first nanosecond of the clock at which the limit's own time reaches `own_ns`;
    /// `None` if it never does.
    pub fn clock_ns(&self, own_ns: u64) -> Option<u64> {
        let wanted = own_ns.saturating_sub(self.anchor_own_ns);
        let lasting = |factor: Factor, from_ns: u64, wanted| {
            factor
                .time_for(wanted)
                .and_then(|ns| from_ns.checked_add(ns))
        };
        let alone = lasting(self.factor, self.anchor_ns, wanted);
        let Some((until_ns, then)) = self.then else {
            return alone;
        };
        if let Some(at_ns) = alone.filter(|at_ns| *at_ns <= until_ns) {
            return Some(at_ns);
        }
        let first = self.factor.passed(until_ns.saturating_sub(self.anchor_ns));
        lasting(then, until_ns.max(self.anchor_ns), wanted - first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_factor_is_a_ratio_within_bounds() {
        assert_eq!(Factor::new(3, 3), Ok(Factor::ONE));
        assert_eq!(Factor::new(1, 3).unwrap().of(10), 3);
        for (numerator, denominator) in [(1, 0), (1_000_001, 1_000_000), (1_001, 1)] {
            assert_eq!(Factor::new(numerator, denominator), Err(FactorError));
        }
    }

    fn factors() -> impl Strategy<Value = Factor> {
        (0_u32..50, 1_u32..50).prop_map(|(n, d)| Factor::new(n, d).unwrap())
    }

    proptest! {
        #[test]
        fn dial_time_is_monotonic_and_predicted_exactly(
            first in factors(), second in factors(), third in factors(),
            turn in 0_u64..1_000, length in 1_u64..1_000, now in 0_u64..3_000, ahead in 0_u64..3_000,
        ) {
            let dial = Dial::new(first, 0).turned(turn, second, Some((turn + length, third)));
            prop_assert!(dial.own_ns(now) <= dial.own_ns(now + 1));
            let wanted = dial.own_ns(now) + ahead;
            match dial.clock_ns(wanted) {
                Some(at) => {
                    prop_assert!(dial.own_ns(at) >= wanted);
                    prop_assert!(at <= turn || dial.own_ns(at - 1) < wanted);
                }
                None => prop_assert!(dial.own_ns(1 << 40) < wanted),
            }
        }
    }
}
