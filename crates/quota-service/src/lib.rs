//! Quotas of a node: the quota engine's cells behind locks, decided on the caller's thread.
//!
//! Cells are spread over 64 shards, each behind a mutex; a take locks the shards it needs in
//! ascending order, decides, and unlocks them. Changes of a take are written to the journal a
//! moment later in a batch, or before its answer if its limit is `sync` (`persistence`). The rules
//! are an immutable value that is replaced as a whole (`admin`); a decision holds their read lock,
//! so a take never sees a change half applied. With a shared store (`shared`), cells belong to
//! several nodes.
//!
//! Lock order: the rules, the shards by number, the queues, the journal's locks.
//!
//! The crate knows principals and takes. It does not know connections, messages or listeners.
//! Invariant: *without a limit, the check of an operation costs one atomic read.*

mod admin;
mod admission;
mod cells;
mod clock;
mod counts;
mod desk;
mod events;
mod limit_config;
mod look;
mod outcome;
mod persistence;
mod queues;
pub mod quota_store;
mod service;
mod settle;
mod shared;
mod sketch;
mod take;
#[cfg(test)]
mod tests;
mod top;
mod usage;
mod waiting_take;

use std::time::Duration;

pub use admin::{AppliedChange, By, ChangeError};
pub use admission::{ChargeReceipt, Charged, HaltNotice, InFlight, Throttled};
pub use clock::ClockStep;
pub use counts::{BucketCounts, LimitCounts, TakeCounts};
pub use desk::Desk;
pub use events::{Event, EventKind, Watch, WatchItem};
pub use limit_config::{LimitConfig, parse_factor, parse_refill};
pub use outcome::{DecidedTake, Denial, HoldGrant, Outcome, Take};
pub use persistence::{OpenError, QuotaStreams};
pub use quota_store::SharedStore;
pub use service::{QuotaService, Quotas};
pub use settle::{Requester, SettleAnswer, SettleOutcome};
pub use shared::SharedStoreView;
pub use top::{TopBy, TopRow};
pub use usage::{USAGE_DAYS, UsageBy, UsageCursor, UsagePage, UsageQuery, UsageRow};
pub use waiting_take::{Attempt, TakeProgress, WaitingTake};

/// Capacity limits of quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of buckets, over all limits.
    pub subjects_max: usize,
    /// Maximum number of open holds.
    pub holds_max: usize,
    /// Maximum lifetime of a hold.
    pub hold_max: Duration,
    /// Maximum number of take ids that are remembered.
    pub ids_max: usize,
    /// Minimum time that a take id is remembered, unless there are more than `ids_max`.
    pub id_window: Duration,
    /// Maximum number of waiting takes.
    pub waiting_max: usize,
    /// Number of administrative changes in the audit log.
    pub audit_max: usize,
    /// Maximum number of rows of usage per day: a row is a limit and a subject.
    pub usage_rows_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            subjects_max: 10_000_000,
            holds_max: 1_000_000,
            hold_max: Duration::from_secs(24 * 3600),
            ids_max: 100_000,
            id_window: Duration::from_secs(600),
            waiting_max: 10_000,
            audit_max: 100_000,
            usage_rows_max: 20_000,
        }
    }
}
