//! How many one bucket has to allow: what it held, and what came back while it was asked.
//!
//! Asked faster than it refills, a bucket that was full admits `capacity + ⌊refill · t⌋` over `t`
//! seconds, whoever asks and however. The time here is the load's own, which begins before the first
//! decision and ends after the last: by at most one take that is more than the server's.

use serde::Serialize;

use super::{CAPACITY, REFILL_PER_S};
use crate::measurement::Answered;

/// By how much a count may differ from the one that follows from the load's own clock.
const TOLERANCE: u64 = 1;

/// What one bucket had to allow, and what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exactness {
    /// `100 + ⌊10 · t⌋`, or all that were asked for.
    pub must_allow: u64,
    /// What it allowed.
    pub allowed: u64,
}

impl Exactness {
    /// Whether that is right, up to one.
    #[must_use]
    pub fn holds(self) -> bool {
        self.allowed.abs_diff(self.must_allow) <= TOLERANCE
    }
}

/// What one bucket had to allow, where a run asked just one.
#[must_use]
pub fn exactness(answered: &Answered) -> Option<Exactness> {
    Some(Exactness {
        must_allow: answered.must_allow?,
        allowed: answered.allowed(),
    })
}

/// What one bucket must allow of so many takes of one, all of them within `window_ns`.
pub(super) fn must_allow(takes: u64, window_ns: u64) -> u64 {
    let refilled = u128::from(window_ns) * u128::from(REFILL_PER_S) / 1_000_000_000;
    let most = CAPACITY.saturating_add(u64::try_from(refilled).unwrap_or(u64::MAX));
    most.min(takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Endpoint;

    #[test]
    fn the_number_of_the_report_is_found() {
        // 1,000 requests at 503.91 a second.
        assert_eq!(must_allow(1_000, 1_984_000_000), 119);
        assert_eq!(must_allow(1_000, 99_999_999), 100);
        assert_eq!(must_allow(50, 1_984_000_000), 50);
        assert_eq!(must_allow(u64::MAX, u64::MAX), 100 + 184_467_440_737);
    }

    #[test]
    fn a_count_holds_up_to_one() {
        let asked = |allowed: u64, must_allow| {
            let mut endpoint = Endpoint::default();
            (0..allowed).for_each(|_| endpoint.allowed.record(1));
            Answered {
                endpoints: vec![endpoint],
                must_allow,
                ..Answered::default()
            }
        };
        let holds = |allowed| exactness(&asked(allowed, Some(119))).map(Exactness::holds);
        assert_eq!(holds(118), Some(true));
        assert_eq!(holds(120), Some(true));
        assert_eq!(holds(117), Some(false));
        assert_eq!(holds(121), Some(false));
        assert_eq!(exactness(&asked(3, None)), None);
    }
}
