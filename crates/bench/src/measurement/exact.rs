//! Exactness of buckets. One bucket must allow its capacity plus its refill during the load. Nodes
//! that share a bucket may not allow more than that, and allow less as long as one of them holds a
//! lease that another could spend.
//!
//! A full bucket that gets takes faster than it refills admits `capacity + ⌊refill · t⌋` over `t`
//! seconds, independent of their source. The time here is the load's own. It begins before the
//! first decision and ends after the last, which exceeds the server's time by at most one take.

use serde::Serialize;

use super::Answers;

/// Maximum difference between the counted and the computed number.
const TOLERANCE: u64 = 1;

/// Required and counted number of allowed takes of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exactness {
    /// `100 + ⌊10 · t⌋`, or the number of takes if that is smaller.
    pub must_allow: u64,
    /// Number of allowed takes.
    pub allowed: u64,
}

impl Exactness {
    /// Returns true if the numbers differ by at most one.
    #[must_use]
    pub fn holds(self) -> bool {
        self.allowed.abs_diff(self.must_allow) <= TOLERANCE
    }
}

/// Returns the exactness of a run with a single bucket.
#[must_use]
pub fn exactness(answered: &Answers) -> Option<Exactness> {
    Some(Exactness {
        must_allow: answered.must_allow?,
        allowed: answered.allowed(),
    })
}

/// Maximum and counted number of allowed takes of buckets shared by several nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Excess {
    /// Sum of `capacity + ⌊refill · t⌋` over the buckets.
    pub may_allow: u64,
    /// Number of allowed takes.
    pub allowed: u64,
}

impl Excess {
    /// Returns by how many takes the maximum is exceeded.
    #[must_use]
    pub fn over(self) -> u64 {
        self.allowed.saturating_sub(self.may_allow)
    }
}

/// Returns the excess of a run whose nodes share buckets.
#[must_use]
pub fn excess(answered: &Answers) -> Option<Excess> {
    Some(Excess {
        may_allow: answered.may_allow?,
        allowed: answered.allowed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Endpoint;

    #[test]
    fn sharing_nodes_may_allow_fewer_but_not_more() {
        let over = |allowed: u64| {
            let mut endpoint = Endpoint::default();
            (0..allowed).for_each(|_| endpoint.allowed.record(1));
            let answered = Answers {
                endpoints: vec![endpoint],
                may_allow: Some(119),
                ..Answers::default()
            };
            excess(&answered).map(Excess::over)
        };
        assert_eq!([over(0), over(119), over(120)], [Some(0), Some(0), Some(1)]);
        assert_eq!(excess(&Answers::default()), None);
    }

    #[test]
    fn an_exact_count_may_differ_by_one() {
        let asked = |allowed: u64, must_allow| {
            let mut endpoint = Endpoint::default();
            (0..allowed).for_each(|_| endpoint.allowed.record(1));
            Answers {
                endpoints: vec![endpoint],
                must_allow,
                ..Answers::default()
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
