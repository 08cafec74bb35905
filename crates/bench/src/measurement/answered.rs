//! What a limiter answered: by endpoint, allowed apart from refused.
//!
//! It takes the answers of [`Measurement`](super::Measurement) apart and adds nothing to them: all its
//! latencies together are those of the run.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// What was answered in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Each endpoint that was asked, in the order of the load.
    pub endpoints: Vec<Endpoint>,
    /// Parts that each request's time was taken apart into, where it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Checks of the answers that were made.
    pub checks: u64,
    /// Of those, how many held.
    pub checks_held: u64,
    /// How many had to be allowed, where one bucket was asked and that is known.
    pub must_allow: Option<u64>,
    /// How many were allowed to be, where nodes that share buckets were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_allow: Option<u64>,
}

/// The answers of one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its path.
    pub name: String,
    /// Latencies of what was allowed, or simply answered.
    pub allowed: Histogram,
    /// Latencies of what was refused because of a limit.
    pub limited: Histogram,
}

/// A part of a request's time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What it is.
    pub name: String,
    /// Nanoseconds of each request.
    pub time: Histogram,
}

impl Answered {
    /// How many were allowed.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        let counts = self.endpoints.iter().map(|one| one.allowed.count());
        counts.sum()
    }

    /// How many were refused.
    #[must_use]
    pub fn limited(&self) -> u64 {
        let counts = self.endpoints.iter().map(|one| one.limited.count());
        counts.sum()
    }

    /// Adds the answers of another run of the same load.
    pub fn merge(&mut self, other: &Self) {
        for theirs in &other.endpoints {
            match self
                .endpoints
                .iter_mut()
                .find(|one| one.name == theirs.name)
            {
                Some(ours) => {
                    ours.allowed.merge(&theirs.allowed);
                    ours.limited.merge(&theirs.limited);
                }
                None => self.endpoints.push(theirs.clone()),
            }
        }
        for theirs in &other.phases {
            match self.phases.iter_mut().find(|one| one.name == theirs.name) {
                Some(ours) => ours.time.merge(&theirs.time),
                None => self.phases.push(theirs.clone()),
            }
        }
        self.checks += other.checks;
        self.checks_held += other.checks_held;
        // What buckets had to or were to allow is known of one run alone.
        (self.must_allow, self.may_allow) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, allowed: u64, limited: u64) -> Answered {
        let mut endpoint = Endpoint {
            name: name.to_owned(),
            ..Endpoint::default()
        };
        (0..allowed).for_each(|_| endpoint.allowed.record(1_000));
        (0..limited).for_each(|_| endpoint.limited.record(2_000));
        Answered {
            endpoints: vec![endpoint],
            checks: allowed,
            checks_held: allowed,
            must_allow: Some(allowed),
            ..Answered::default()
        }
    }

    #[test]
    fn runs_add_up_endpoint_by_endpoint() {
        let mut all = run("/a", 3, 1);
        all.merge(&run("/b", 2, 0));
        all.merge(&run("/a", 4, 5));
        assert_eq!((all.allowed(), all.limited()), (9, 6));
        assert_eq!(all.endpoints.len(), 2);
        assert_eq!(all.endpoints[0].allowed.count(), 7);
        assert_eq!((all.checks, all.must_allow), (9, None));
    }
}
