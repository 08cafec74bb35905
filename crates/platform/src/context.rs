//! [`RequestContext`]: the part of a client's request that every service needs.

use std::sync::Arc;

use journal::{Journal, Round};

use crate::counters::Tally;

/// The time, the round of appends and the counts of a client's requests that are decided together.
pub struct RequestContext<'a> {
    /// The node's clock, in nanoseconds.
    pub now_ns: u64,
    /// The wall clock, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// The appends that the journal's writer was not notified of yet.
    pub round: &'a mut Option<Round>,
    /// The counts of the requests, added to the node's counters later.
    pub tally: &'a mut Tally,
}

impl RequestContext<'_> {
    /// Returns the round of appends, and begins it if there is none.
    #[inline]
    pub fn round(&mut self, journal: &Arc<Journal>) -> &Round {
        self.round.get_or_insert_with(|| journal.round())
    }
}
