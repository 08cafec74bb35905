//! Requests to take, and their outcomes.

use std::sync::Arc;
use std::time::Duration;

use platform::Durable;
use quota::{Cost, HoldId, Kind, Limit, Refused, Subject, When};

/// A request to take credit.
#[derive(Clone, Copy, Debug)]
pub struct Take<'a> {
    /// The subject that is charged.
    pub subject: Subject<'a>,
    /// Amounts by unit.
    pub costs: &'a [Cost],
    /// Maximum lifetime of a reservation that is settled later; `None` to spend at once.
    pub hold: Option<Duration>,
    /// The idempotency key: a second take of the subject with this id is not charged again and gets
    /// the first answer. At most 255 bytes.
    pub id: Option<&'a str>,
    /// The proven principal of the caller, if any: only it and administrators may settle the hold.
    pub principal: Option<&'a str>,
}

/// A hold that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldGrant {
    /// The id that settles it.
    pub id: HoldId,
    /// Expiry time, in nanoseconds of [`Quotas::now_ns`](super::Quotas::now_ns).
    pub deadline_ns: u64,
}

/// A decided take.
#[derive(Clone, Debug)]
#[must_use = "it was decided in any case"]
pub struct DecidedTake {
    /// The outcome to send, once `durable` is durable.
    pub outcome: Outcome,
    /// The durability that the answer waits for.
    pub durable: Option<Durable>,
    /// True if it was decided without the shared store.
    pub is_degraded: bool,
}

/// The outcome of a take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every limit admitted the take, and it was charged.
    Admitted {
        /// The hold, if one was requested.
        hold: Option<HoldGrant>,
        /// True if an earlier take with this id was charged.
        is_repeat: bool,
    },
    /// A limit denied the take; nothing was charged.
    Denied(Denial),
    /// An administrator has halted the prefix.
    Halted {
        /// The halted prefix.
        prefix: Box<str>,
        /// The administrator's reason.
        reason: Box<str>,
    },
    /// The take is invalid; a retry cannot succeed.
    Refused(Refused),
    /// The take could not be decided or stored; nothing was charged.
    Unavailable {
        /// The reason, for people.
        reason: String,
    },
    /// The take may or may not have been charged: the store did not answer.
    Unconfirmed {
        /// The reason, for people.
        reason: String,
    },
}

/// Details of a denied take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The limit with the latest retry time.
    pub limit: Arc<Limit>,
    /// The credit left, rounded down; negative for debt.
    pub have: i128,
    /// The requested amount.
    pub need: u64,
    /// The time at which it would pass without other takes.
    pub when: When,
    /// Time until then, in nanoseconds; `None` if unknown or never.
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

    /// Returns whether waiting is pointless: a budget is spent, or the credit does not refill.
    pub fn is_exhausted(&self) -> bool {
        match self.when {
            When::Period(_) | When::Never => true,
            When::At(_) => matches!(self.limit.kind, Kind::Budget { .. }),
            When::Release => false,
        }
    }

    /// Returns the amount that would pass now.
    pub fn would_pass(&self) -> u64 {
        u64::try_from(self.have.max(0)).unwrap_or(u64::MAX)
    }
}

/// Whether a take may use a cell that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The take is first in the queue.
    Mine,
    /// The take does not wait, and must not overtake waiting ones.
    NotWaiting,
    /// A listener's charge for a connected client, which returns its slots by itself.
    AtDoor,
}

/// The hold and records of a take, besides its cells.
#[derive(Default)]
pub(super) struct Note {
    pub(super) hold: Option<HoldGrant>,
    pub(super) records: Vec<(u8, Vec<u8>)>,
    pub(super) cost_digest: u64,
    pub(super) id: Option<(String, u64)>,
}

impl DecidedTake {
    pub(super) fn at_once(outcome: Outcome) -> Self {
        Self {
            outcome,
            durable: None,
            is_degraded: false,
        }
    }

    pub(super) fn unavailable(reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::at_once(Outcome::Unavailable { reason })
    }
}

/// Returns the key of a take id, which is scoped to its subject.
pub(super) fn id_of(subject: &Subject<'_>, id: &str) -> String {
    format!("{subject}\n{id}")
}
