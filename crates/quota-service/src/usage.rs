//! Usage: what admitted takes have cost, by day, limit and subject.
//!
//! A take adds its cost to the [`Spends`] of a shard that it has locked anyway. A second later, the
//! sweep moves the sums to the [`Days`], and appends the rows that have changed to the journal,
//! after the cells and holds of these takes: a crash may lose the last second of usage, but counts
//! nothing twice. A hold counts when it ends, with its true cost.
//!
//! The subject of a row is `org/namespace/agent`, for every pattern of a limit; runs and
//! instances count as their agent. Slots are not counted, since they are returned. The number of
//! rows of a day is bounded; subjects beyond it share one row per limit.

mod collect;
mod days;
mod persistence;
mod report;
pub(crate) mod spends;
mod writing;

use parking_lot::Mutex;

pub use days::USAGE_DAYS;
pub(crate) use persistence::WriteTime;
pub use report::{UsageBy, UsageCursor, UsagePage, UsageQuery, UsageRow};

use days::Days;
use writing::{UsageGuard, Writing};

/// The usage of a node.
pub(super) struct Usage {
    days: Mutex<Days>,
    /// Locked while spends are collected and written, before the rules: so that no usage is written
    /// before the takes that it counts.
    writing: Mutex<Writing>,
}

impl Usage {
    /// Creates a usage without rows. Rows are written if the node `is_persistent`.
    pub(super) fn new(rows_max: usize, is_persistent: bool) -> Self {
        Self {
            days: Mutex::new(Days::new(rows_max, is_persistent)),
            writing: Mutex::default(),
        }
    }

    /// Stops other threads from collecting and writing usage. Must be called before the rules are
    /// locked.
    pub(super) fn lock(&self) -> UsageGuard<'_> {
        UsageGuard(self.writing.lock())
    }
}
