//! What people change while the node runs, beside the limits: for one prefix, and with an end.

use crate::limit::{AMOUNT_MAX, Bucket, Kind, PERIOD_NS_MAX};

/// Another capacity or refill for one cell, until it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// What a bucket, a budget or slots hold instead.
    pub capacity: Option<u64>,
    /// What comes back to a bucket instead: amount and nanoseconds.
    pub refill: Option<(u64, u64)>,
    /// Given once, beyond what there is.
    pub grant: u64,
    /// When it ends, in nanoseconds since 1970-01-01 UTC; `u64::MAX` for never.
    pub until_ns: u64,
    /// Who said so.
    pub by: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// Nothing is admitted for a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// Since when, in nanoseconds since 1970-01-01 UTC.
    pub since_ns: u64,
    /// Who said so.
    pub by: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// Why something cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// There is no such limit.
    #[error("there is no limit `{0}`")]
    UnknownLimit(String),
    /// The limit has no cell of that prefix.
    #[error("limit `{limit}` has no bucket for `{prefix}`: its pattern is `{pattern}`")]
    ForeignPrefix {
        /// The limit.
        limit: String,
        /// What was given.
        prefix: String,
        /// What the limit is for.
        pattern: String,
    },
    /// A number is out of its range.
    #[error("{0}")]
    Range(&'static str),
    /// There are as many as there may be.
    #[error("there are {0}, and no more are kept")]
    TooMany(usize),
    /// There is none to take back.
    #[error("there is none for `{0}`")]
    None(String),
}

impl Override {
    /// The kind that stands while it does.
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

    /// Whether it gives no more than what stands otherwise.
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
                "there is at most 1000000000000000 of anything",
            ));
        }
        if !(1..=PERIOD_NS_MAX).contains(&period_ns) {
            let reason = "the period of a refill is between 1 ns and 366 days";
            return Err(AdminError::Range(reason));
        }
        match (is_bucket, self.refill, self.grant, base) {
            (false, Some(_), _, _) => Err(AdminError::Range("only a bucket is refilled")),
            (_, _, 1.., Kind::Slots { .. }) => Err(AdminError::Range("slots are not granted")),
            _ => Ok(()),
        }
    }
}
