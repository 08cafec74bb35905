//! Answers of a rate limiter: by endpoint, allowed separate from refused.
//!
//! The answers of a [`Measurement`](super::Measurement), split by kind. All latencies here together
//! are those of the run.

use serde::{Deserialize, Serialize};

use meter::histogram::Histogram;

/// Answers of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Each endpoint of the load, in its order.
    pub endpoints: Vec<Endpoint>,
    /// Phases of the requests' time, if they were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Number of checks made on the answers.
    pub checks: u64,
    /// Number of checks that passed.
    pub checks_held: u64,
    /// Number of takes that had to be allowed, if one bucket was asked and the number is known.
    pub must_allow: Option<u64>,
    /// Maximum number of takes that nodes sharing buckets may allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_allow: Option<u64>,
}

/// The answers of one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Path of the endpoint.
    pub name: String,
    /// Latencies of allowed requests, and of plain answers.
    pub allowed: Histogram,
    /// Latencies of requests refused by a limit.
    pub limited: Histogram,
}

/// A phase of the requests' time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the phase.
    pub name: String,
    /// Nanoseconds of each request.
    pub time: Histogram,
}

impl Answers {
    /// Returns the number of allowed requests.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        let counts = self.endpoints.iter().map(|one| one.allowed.count());
        counts.sum()
    }

    /// Returns the number of refused requests.
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
        // The limits of a bucket are known for one run only.
        (self.must_allow, self.may_allow) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, allowed: u64, limited: u64) -> Answers {
        let mut endpoint = Endpoint {
            name: name.to_owned(),
            ..Endpoint::default()
        };
        (0..allowed).for_each(|_| endpoint.allowed.record(1_000));
        (0..limited).for_each(|_| endpoint.limited.record(2_000));
        Answers {
            endpoints: vec![endpoint],
            checks: allowed,
            checks_held: allowed,
            must_allow: Some(allowed),
            ..Answers::default()
        }
    }

    #[test]
    fn answers_of_runs_are_summed_per_endpoint() {
        let mut all = run("/a", 3, 1);
        all.merge(&run("/b", 2, 0));
        all.merge(&run("/a", 4, 5));
        assert_eq!((all.allowed(), all.limited()), (9, 6));
        assert_eq!(all.endpoints.len(), 2);
        assert_eq!(all.endpoints[0].allowed.count(), 7);
        assert_eq!((all.checks, all.must_allow), (9, None));
    }
}
