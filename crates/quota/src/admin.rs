//! Operator changes at run time besides the limits themselves: overrides and halts, each for one
//! prefix.

use crate::limit::{AMOUNT_MAX, Bucket, Kind, PERIOD_NS_MAX};

/// A different capacity or refill for one cell, valid until it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The capacity of the bucket, budget or slots; `None` keeps that of the limit.
    pub capacity: Option<u64>,
    /// The refill of a bucket as amount and period in nanoseconds; `None` keeps that of the limit.
    pub refill: Option<(u64, u64)>,
    /// Credit granted once, in addition to the balance.
    pub grant: u64,
    /// The end of the override, in nanoseconds since 1970-01-01 UTC; `u64::MAX` for never.
    pub until_ns: u64,
    /// The principal that made the override.
    pub by: Box<str>,
    /// The reason given for it.
    pub reason: Box<str>,
}

/// A stop for a prefix: no take below it is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// The beginning of the halt, in nanoseconds since 1970-01-01 UTC.
    pub since_ns: u64,
    /// The principal that ordered the halt.
    pub by: Box<str>,
    /// The reason given for it.
    pub reason: Box<str>,
}

/// An administrative change that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// No limit has this name.
    #[error("there is no limit `{0}`")]
    UnknownLimit(String),
    /// The limit has no cell for this prefix.
    #[error("limit `{limit}` has no bucket for `{prefix}`: its pattern is `{pattern}`")]
    ForeignPrefix {
        /// The limit.
        limit: String,
        /// The prefix in the request.
        prefix: String,
        /// The pattern of the limit.
        pattern: String,
    },
    /// A number is out of its range.
    #[error("{0}")]
    Range(&'static str),
    /// The maximum number of overrides or halts is reached.
    #[error("too many overrides or halts (limit {0})")]
    TooMany(usize),
    /// No override or halt exists for this prefix.
    #[error("no override or halt exists for `{0}`")]
    None(String),
}

impl Override {
    /// Returns the limit's kind with the override applied to it.
    pub(crate) fn kind(&self, base: Kind) -> Kind {
        match base {
            Kind::Bucket(bucket) => {
                let (amount, period_ns) = self.refill.unwrap_or((bucket.amount, bucket.period_ns));
                Kind::Bucket(Bucket {
                    capacity: self.capacity.unwrap_or(bucket.capacity),
                    amount,
                    period_ns,
                })
            }
            Kind::Budget {
                amount,
                every,
                zone,
            } => Kind::Budget {
                amount: self.capacity.unwrap_or(amount),
                every,
                zone,
            },
            Kind::Slots { capacity } => Kind::Slots {
                capacity: self.capacity.unwrap_or(capacity),
            },
        }
    }

    /// Returns whether the override gives no more than the limit without it.
    pub(crate) fn tightens(&self, base: Kind) -> bool {
        let refill = |kind| match kind {
            Kind::Bucket(Bucket {
                amount, period_ns, ..
            }) => (u128::from(amount), u128::from(period_ns)),
            Kind::Budget { .. } | Kind::Slots { .. } => (0, 1),
        };
        let kind = self.kind(base);
        let ((amount, period_ns), (most, per_ns)) = (refill(kind), refill(base));
        self.grant == 0 && kind.capacity() <= base.capacity() && amount * per_ns <= most * period_ns
    }

    pub(crate) fn check(&self, base: Kind) -> Result<(), AdminError> {
        let numbers = [self.capacity.unwrap_or(0), self.grant];
        let (amount, period_ns) = self.refill.unwrap_or((0, 1));
        let is_bucket = matches!(base, Kind::Bucket(_));
        if numbers
            .into_iter()
            .chain([amount])
            .any(|number| number > AMOUNT_MAX)
        {
            return Err(AdminError::Range(
                "an amount exceeds the maximum of 1000000000000000",
            ));
        }
        if !(1..=PERIOD_NS_MAX).contains(&period_ns) {
            let reason = "the refill period must be between 1 ns and 366 days";
            return Err(AdminError::Range(reason));
        }
        match (is_bucket, self.refill, self.grant, base) {
            (false, Some(_), _, _) => Err(AdminError::Range("only buckets have a refill")),
            (_, _, 1.., Kind::Slots { .. }) => Err(AdminError::Range("slots cannot be granted")),
            _ => Ok(()),
        }
    }
}
