//! Options of quotas. The limits themselves are `[[limit]]` tables in the file.

use std::time::Duration;

use quota_service::Options as Quotas;

use super::units::count;

options! {
    /// Quotas: bounds of the memory for buckets, holds and waiting takes. Limits are written as
    /// `[[limit]]` tables, each with `name`, `match`, `unit`, and `capacity` and `refill`, or
    /// `budget` and `every`.
    quota, "Quotas";

    /// Maximum number of buckets, over all limits. At the maximum a full bucket is evicted; if none
    /// is full, new subjects share one bucket per limit.
    "quota.subjects_max" => subjects_max: u32 = count(Quotas::default().subjects_max),
        from "64" to "1000000000";

    /// Maximum number of holds that are not settled.
    "quota.holds_max" => holds_max: u32 = count(Quotas::default().holds_max), from "64" to "100000000";

    /// Maximum duration of a hold.
    "quota.hold_max" => hold_max: Duration = Quotas::default().hold_max, from "1s" to "8760h";

    /// Time for which the id of a take is remembered; a repeated take with a remembered id takes
    /// nothing.
    "quota.id_window" => id_window: Duration = Quotas::default().id_window, from "1s" to "24h";

    /// Maximum number of remembered ids of takes; above it the oldest are forgotten.
    "quota.ids_max" => ids_max: u32 = count(Quotas::default().ids_max), from "64" to "100000000";

    /// Maximum number of takes that wait for credit.
    "quota.waiting_max" => waiting_max: u32 = count(Quotas::default().waiting_max), from "1" to "1000000";

    /// Number of changes of limits that the audit log keeps, at least; it keeps at most twice as
    /// many.
    "quota.audit_max" => audit_max: u32 = count(Quotas::default().audit_max), from "1" to "100000000";

    /// Maximum number of rows of usage per day: a row is a limit and a subject. Further subjects
    /// share one row per limit.
    "quota.usage_rows_max" => usage_rows_max: u32 = count(Quotas::default().usage_rows_max), from "1" to "10000000";
}

impl Options {
    /// Returns the options as the quota service takes them.
    pub fn to_service(&self) -> Quotas {
        Quotas {
            subjects_max: self.subjects_max as usize,
            holds_max: self.holds_max as usize,
            hold_max: self.hold_max,
            ids_max: self.ids_max as usize,
            id_window: self.id_window,
            waiting_max: self.waiting_max as usize,
            audit_max: self.audit_max as usize,
            usage_rows_max: self.usage_rows_max as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_options_are_those_of_the_service() {
        assert_eq!(Options::default().to_service(), Quotas::default());
    }
}
