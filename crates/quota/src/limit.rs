//! A limit as it is configured.

use std::sync::Arc;

use crate::calendar::Every;
use crate::dial::Factor;
use crate::pattern::Pattern;
use crate::unit::Unit;
use crate::zone::Zone;

/// Largest capacity, budget, refill and cost. With the longest period and the largest weight, all
/// sums fit into 128 bits.
pub const AMOUNT_MAX: u64 = 1_000_000_000_000_000;
/// Longest period of a refill: 366 days.
pub const PERIOD_NS_MAX: u64 = 366 * 86_400 * 1_000_000_000;
/// Largest weight.
pub const WEIGHT_MAX: u32 = 1_000;

/// Identifies a limit. A limit that is configured again under the same name keeps its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitId(pub u32);

/// A limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name.
    pub name: Arc<str>,
    /// The pattern of the subjects that it covers.
    pub pattern: Pattern,
    /// The unit that it counts.
    pub unit: Unit,
    /// The capacity and how it is renewed.
    pub kind: Kind,
    /// The enforcement mode.
    pub mode: Mode,
    /// When a take is answered.
    pub durability: Durability,
    /// Multiplies the refill of buckets, and the capacity of budgets and slots.
    pub factor: Factor,
    /// Multiplies the refill, and is the share of waiting takes in the fair queue. At least 1.
    pub weight: u32,
    /// Warning thresholds, ascending, in thousandths of the capacity. Crossing one is reported
    /// once.
    pub warn: Vec<u16>,
    /// The behaviour when the shared store cannot be reached.
    pub on_unreachable: Unreachable,
}

/// The capacity of a limit and how it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Refilled continuously.
    Bucket(Bucket),
    /// Renewed as a whole at the start of each calendar period.
    Budget {
        /// The amount per period.
        amount: u64,
        /// The calendar period.
        every: Every,
        /// The time zone of the calendar.
        zone: Zone,
    },
    /// Renewed when holders release their slots.
    Slots {
        /// Slots that may be in use at the same time.
        capacity: u64,
    },
}

/// A bucket that is refilled evenly by `amount` per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The amount in a full bucket.
    pub capacity: u64,
    /// The refill per period; 0 for none.
    pub amount: u64,
    /// The period in nanoseconds, at least 1.
    pub period_ns: u64,
}

/// The enforcement mode of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The limit denies takes.
    #[default]
    Enforce,
    /// The limit only reports the takes that it would deny.
    Shadow,
    /// The limit is ignored.
    Off,
}

/// When a take is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At once; the take is on disk a moment later.
    #[default]
    Async,
    /// Once the take is on disk.
    Sync,
}

/// The behaviour when the shared store cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreachable {
    /// Each node grants its share of the limit.
    #[default]
    Degrade,
    /// Takes are denied.
    Deny,
    /// Takes are admitted.
    Allow,
}

impl Kind {
    /// Returns the capacity, before any factor.
    pub fn capacity(&self) -> u64 {
        match *self {
            Self::Bucket(Bucket { capacity, .. }) | Self::Slots { capacity } => capacity,
            Self::Budget { amount, .. } => amount,
        }
    }

    /// Returns the capacity with the factor applied.
    pub(crate) fn capacity_by(&self, factor: Factor) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.capacity,
            Self::Budget { .. } | Self::Slots { .. } => factor.of(self.capacity()),
        }
    }

    /// Returns the kind with the refill multiplied by the weight.
    pub(crate) fn weighed(self, weight: u32) -> Self {
        match self {
            Self::Bucket(bucket) => Self::Bucket(Bucket {
                amount: bucket.amount * u64::from(weight),
                ..bucket
            }),
            other => other,
        }
    }
}
