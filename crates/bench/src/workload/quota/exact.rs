//! How many one bucket has to allow: what it held, and what came back while it was asked. And how many nodes may
//! that share one: no more than that, and fewer as long as one of them holds what another could spend.
//!
//! Asked faster than it refills, a bucket that was full admits `capacity + ⌊refill · t⌋` over `t`
//! seconds, whoever asks and however. The time here is the load's own, which begins before the first
//! decision and ends after the last: by at most one take that is more than the server's.

use serde::Serialize;

use super::limits::Bucket;
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

/// What buckets may allow that several nodes share, and what these allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Excess {
    /// `capacity + ⌊refill · t⌋` of every bucket.
    pub may_allow: u64,
    /// What was allowed.
    pub allowed: u64,
}

impl Excess {
    /// By how many that is too much.
    #[must_use]
    pub fn over(self) -> u64 {
        self.allowed.saturating_sub(self.may_allow)
    }
}

/// What nodes that share buckets were allowed to admit, where that was asked.
#[must_use]
pub fn excess(answered: &Answered) -> Option<Excess> {
    Some(Excess {
        may_allow: answered.may_allow?,
        allowed: answered.allowed(),
    })
}

/// The most that a bucket which is full admits within `window_ns`, of takes of one.
pub(super) fn at_most(bucket: Bucket, window_ns: u64) -> u64 {
    let refilled = u128::from(window_ns) * u128::from(bucket.refill_per_s) / 1_000_000_000;
    let refilled = u64::try_from(refilled).unwrap_or(u64::MAX);
    bucket.capacity.saturating_add(refilled)
}

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::*;
    use crate::measurement::Endpoint;

    #[test]
    fn the_number_of_the_report_is_found() {
        let at_most = |window_ns| at_most(Limits::One.bucket(), window_ns);
        // 1,000 requests at 503.91 a second.
        assert_eq!(at_most(1_984_000_000), 119);
        assert_eq!(at_most(99_999_999), 100);
        assert_eq!(at_most(u64::MAX), 100 + 184_467_440_737);
    }

    #[test]
    fn nodes_that_share_may_allow_fewer_and_not_one_more() {
        let over = |allowed: u64| {
            let mut endpoint = Endpoint::default();
            (0..allowed).for_each(|_| endpoint.allowed.record(1));
            let answered = Answered {
                endpoints: vec![endpoint],
                may_allow: Some(119),
                ..Answered::default()
            };
            excess(&answered).map(Excess::over)
        };
        assert_eq!([over(0), over(119), over(120)], [Some(0), Some(0), Some(1)]);
        assert_eq!(excess(&Answered::default()), None);
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
