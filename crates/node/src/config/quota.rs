//! Options of quotas. The limits themselves are `[[limit]]` tables in the file.

use std::time::Duration;

options! {
    /// Quotas: bounds of the memory for buckets, holds and waiting takes. Limits are written as
    /// `[[limit]]` tables, each with `name`, `match`, `unit`, and `capacity` and `refill`, or
    /// `budget` and `every`.
    quota, "Quotas";

    /// Maximum number of buckets, over all limits. At the maximum a full bucket is evicted; if none
    /// is full, new subjects share one bucket per limit.
    "quota.subjects_max" => subjects_max: u32 = 10_000_000, from "64" to "1000000000";

    /// Maximum number of holds that are not settled.
    "quota.holds_max" => holds_max: u32 = 1_000_000, from "64" to "100000000";

    /// Maximum duration of a hold.
    "quota.hold_max" => hold_max: Duration = Duration::from_secs(24 * 3600), from "1s" to "8760h";

    /// Time for which the id of a take is remembered; a repeated take with a remembered id takes
    /// nothing.
    "quota.id_window" => id_window: Duration = Duration::from_secs(600), from "1s" to "24h";

    /// Maximum number of remembered ids of takes; above it the oldest are forgotten.
    "quota.ids_max" => ids_max: u32 = 100_000, from "64" to "100000000";

    /// Maximum number of takes that wait for credit.
    "quota.waiting_max" => waiting_max: u32 = 10_000, from "1" to "1000000";

    /// Number of changes of limits that the audit log keeps, at least; it keeps at most twice as
    /// many.
    "quota.audit_max" => audit_max: u32 = 100_000, from "1" to "100000000";
}

impl Options {
    /// The options as the quota service takes them.
    pub fn to_node(&self) -> crate::quotas::Options {
        crate::quotas::Options {
            subjects_max: self.subjects_max as usize,
            holds_max: self.holds_max as usize,
            hold_max: self.hold_max,
            ids_max: self.ids_max as usize,
            id_window: self.id_window,
            waiting_max: self.waiting_max as usize,
            audit_max: self.audit_max as usize,
        }
    }
}
