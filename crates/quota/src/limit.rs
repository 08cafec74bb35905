//! What bounds whom: a limit as it is written down.

use std::sync::Arc;

use crate::calendar::Every;
use crate::dial::Factor;
use crate::pattern::Pattern;
use crate::unit::Unit;
use crate::zone::Zone;

/// Largest capacity, budget, refill and cost. With the longest period and the largest weight no sum
/// of them leaves 128 bits.
pub const AMOUNT_MAX: u64 = 1_000_000_000_000_000;
/// Longest period of a refill: 366 days.
pub const PERIOD_NS_MAX: u64 = 366 * 86_400 * 1_000_000_000;
/// Largest weight.
pub const WEIGHT_MAX: u32 = 1_000;

/// Names a limit for as long as there are policies. A limit of the same name keeps its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitId(pub u32);

/// A limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What people call it.
    pub name: Arc<str>,
    /// Whom it is for.
    pub pattern: Pattern,
    /// What it counts.
    pub unit: Unit,
    /// How much there is.
    pub kind: Kind,
    /// Whether it denies.
    pub mode: Mode,
    /// When a take is answered.
    pub durability: Durability,
    /// Multiplies the refill of buckets, and what budgets and slots hold.
    pub factor: Factor,
    /// Multiplies the refill, and is the share of those who wait for it. From 1.
    pub weight: u32,
    /// Shares of what there is, in thousandths, ascending: whoever takes beyond one is told of, once.
    pub warn: Vec<u16>,
    /// What is done when the cells lie elsewhere and cannot be reached.
    pub on_unreachable: Unreachable,
}

/// How much there is, and how it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Comes back bit by bit.
    Bucket(Bucket),
    /// Comes back as a whole when a stretch of the calendar is over.
    Budget {
        /// In each stretch.
        amount: u64,
        /// Which stretch.
        every: Every,
        /// Whose calendar.
        zone: Zone,
    },
    /// Comes back when it is given back.
    Slots {
        /// At the same time.
        capacity: u64,
    },
}

/// A bucket that is refilled by `amount` in each period, evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// When it is full.
    pub capacity: u64,
    /// What comes back in a period; 0 for nothing ever.
    pub amount: u64,
    /// Nanoseconds, from 1.
    pub period_ns: u64,
}

/// Whether a limit denies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    #[default]
    Enforce,
    /// It says that it would.
    Shadow,
    /// It is not looked at.
    Off,
}

/// When a take is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At once; what was taken is on disk a moment later.
    #[default]
    Async,
    /// When what was taken is on disk.
    Sync,
}

/// What is done when the cells lie elsewhere and cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreachable {
    /// Each node gives its share.
    #[default]
    Degrade,
    /// Nothing is given.
    Deny,
    /// Everything is given.
    Allow,
}

impl Kind {
    /// What there is at most, before any factor.
    pub fn capacity(&self) -> u64 {
        match *self {
            Self::Bucket(Bucket { capacity, .. }) | Self::Slots { capacity } => capacity,
            Self::Budget { amount, .. } => amount,
        }
    }

    /// What there is at most, while the factor stands.
    pub(crate) fn capacity_by(&self, factor: Factor) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.capacity,
            Self::Budget { .. } | Self::Slots { .. } => factor.of(self.capacity()),
        }
    }

    /// With the refill that the weight makes of it.
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
