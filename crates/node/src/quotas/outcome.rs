//! What is asked, and what is answered.

use std::sync::Arc;
use std::time::Duration;

use quota::{Cost, HoldId, Kind, Limit, Refused, Subject, When};

use super::Parked;
use crate::durable::Durable;

/// A take.
#[derive(Clone, Copy, Debug)]
pub struct Take<'a> {
    /// Who.
    pub subject: Subject<'a>,
    /// How much of what.
    pub costs: &'a [Cost],
    /// Reserved for so long at most, until it is settled; else what is taken is taken.
    pub hold: Option<Duration>,
    /// What the taker calls it: a second take of the subject with this id takes nothing and is
    /// answered like the first. At most 255 bytes.
    pub id: Option<&'a str>,
    /// The principal that takes, if one was proven: only it and administrators may settle the hold.
    pub principal: Option<&'a str>,
}

/// A hold that a take was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldGrant {
    /// Settles it.
    pub id: HoldId,
    /// When it ends by itself, in nanoseconds of [`Quotas::now_ns`](super::Quotas::now_ns).
    pub deadline_ns: u64,
}

/// What became of a take.
#[derive(Clone, Debug)]
#[must_use = "it was decided in any case"]
pub struct Taken {
    /// What the taker is told, when what it rests on is on disk.
    pub outcome: Outcome,
    /// What must be on disk before.
    pub durable: Option<Durable>,
    /// It was decided without the store that the cells lie in.
    pub is_degraded: bool,
}

/// What became of a take that was begun.
#[derive(Debug)]
#[must_use = "it is decided when it was looked at"]
pub enum Begun {
    /// It is decided.
    Done(Taken),
    /// The store that its cells lie in has to be asked: it is decided by looking at it.
    Asks(Parked),
}

/// What the taker is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken, everywhere.
    Admitted {
        /// What settles it, if it was to be held.
        hold: Option<HoldGrant>,
        /// It was taken before, by a take with this id.
        is_repeat: bool,
    },
    /// It was not, anywhere.
    Denied(Denial),
    /// Nothing is admitted for that prefix: somebody said so.
    Halted {
        /// The prefix.
        prefix: Box<str>,
        /// Why.
        reason: Box<str>,
    },
    /// It makes no sense: no wait would help.
    Refused(Refused),
    /// It could not be decided, or not be kept; nothing was taken.
    Unavailable {
        /// For people.
        reason: String,
    },
    /// Whether it was taken nobody knows: who was to decide it did not answer.
    Unconfirmed {
        /// For people.
        reason: String,
    },
}

/// Why a take did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The limit that will let it pass last.
    pub limit: Arc<Limit>,
    /// What is left, rounded down; less than nothing is debt.
    pub have: i128,
    /// What was wanted.
    pub need: u64,
    /// When it would pass if nobody else took.
    pub when: When,
    /// How long that is; `None` for nobody knows, or never.
    pub retry_after_ns: Option<u64>,
}

impl Denial {
    pub(super) fn new(limit: &Arc<Limit>, denied: &quota::Denied, now_ns: u64) -> Self {
        let retry_after_ns = match denied.when {
            When::At(at_ns) | When::Period(at_ns) => Some(at_ns.saturating_sub(now_ns)),
            When::Release | When::Never => None,
        };
        Self {
            limit: limit.clone(),
            have: denied.have,
            need: denied.need,
            when: denied.when,
            retry_after_ns,
        }
    }

    /// Whether there is nothing to wait for: a budget is spent, or what is gone does not come back.
    pub fn is_exhausted(&self) -> bool {
        match self.when {
            When::Period(_) | When::Never => true,
            When::At(_) => matches!(self.limit.kind, Kind::Budget { .. }),
            When::Release => false,
        }
    }

    /// What would pass now.
    pub fn would_pass(&self) -> u64 {
        u64::try_from(self.have.max(0)).unwrap_or(u64::MAX)
    }
}
