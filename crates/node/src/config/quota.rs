//! Who may take how much. The limits themselves are `[[limit]]` tables in the file.

use std::time::Duration;

options! {
    /// Quotas: what is kept of those who take. Limits are written as `[[limit]]` tables, each with
    /// `name`, `match`, `unit`, and `capacity` and `refill`, or `budget` and `every`.
    quota, "Quotas";

    /// Buckets, over all limits; subjects that are new share one per limit when there are as many and
    /// none is full.
    "quota.subjects_max" => subjects_max: u32 = 10_000_000, from "64" to "1000000000";

    /// Takes that are held and not settled.
    "quota.holds_max" => holds_max: u32 = 1_000_000, from "64" to "100000000";

    /// How long a hold lasts at most.
    "quota.hold_max" => hold_max: Duration = Duration::from_secs(24 * 3600), from "1s" to "8760h";

    /// How long the id of a take is known, so that a second take with it takes nothing.
    "quota.id_window" => id_window: Duration = Duration::from_secs(600), from "1s" to "24h";

    /// Ids of takes that are known; the oldest are forgotten when there are more.
    "quota.ids_max" => ids_max: u32 = 100_000, from "64" to "100000000";

    /// Takes that wait until they pass.
    "quota.waiting_max" => waiting_max: u32 = 10_000, from "1" to "1000000";

    /// Changes of limits that are kept with who made them, at least; at most twice as many.
    "quota.audit_max" => audit_max: u32 = 100_000, from "1" to "100000000";
}

impl Options {
    /// As the node takes them.
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
