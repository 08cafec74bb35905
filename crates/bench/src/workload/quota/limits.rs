//! The limits that a node of ours has in a run.

use serde::{Deserialize, Serialize};

use super::{CAPACITY, Costs, REFILL_PER_S};

/// How many limits cover a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// The agent's requests, as in the report.
    One,
    /// Requests and tokens of the organisation, of the namespace and of the agent: all must agree.
    Six,
    /// The agent's requests, of which there are always enough.
    Plenty,
    /// The agent's requests, of which there are many, and never enough.
    Scarce,
}

/// What a bucket of an agent's requests holds, and what comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bucket {
    pub(super) capacity: u64,
    pub(super) refill_per_s: u64,
}

/// Enough that a load of ours does not get to the bottom of it: what the upper tiers cost is asked, not
/// what they refuse.
const UNBOUNDED: Bucket = Bucket {
    capacity: 1_000_000_000,
    refill_per_s: 1_000_000_000,
};

/// The agents' limit of requests: by this name the report's surface says how they stand.
const AGENT: &str = "agent";

/// The patterns of the tiers, the agent's last.
const TIERS: [(&str, &str); 3] = [
    ("organisation", "*"),
    ("namespace", "*/*"),
    (AGENT, "*/*/*"),
];

impl Limits {
    /// The bucket of an agent's requests.
    pub(super) fn bucket(self) -> Bucket {
        let (capacity, refill_per_s) = match self {
            Self::One | Self::Six => (CAPACITY, REFILL_PER_S),
            Self::Plenty => (10_000_000, 10_000_000),
            Self::Scarce => (10_000, 10_000),
        };
        Bucket {
            capacity,
            refill_per_s,
        }
    }

    /// What tells cases apart in which they stand; nothing for the report's.
    pub(super) fn parameter(self) -> Option<(&'static str, u64)> {
        match self {
            Self::One => None,
            Self::Six => Some(("limits", 6)),
            Self::Plenty | Self::Scarce => Some(("capacity", self.bucket().capacity)),
        }
    }

    pub(super) fn costs(self) -> Costs {
        match self {
            Self::One | Self::Plenty | Self::Scarce => Costs::Request,
            Self::Six => Costs::RequestAndTokens,
        }
    }

    /// As a node's configuration has them.
    pub(super) fn toml(self) -> String {
        match self {
            Self::One | Self::Plenty | Self::Scarce => {
                limit(AGENT, "*/*/*", "requests", self.bucket())
            }
            Self::Six => TIERS
                .iter()
                .map(|(tier, pattern)| both(tier, pattern))
                .collect(),
        }
    }
}

/// A tier's limits of both units; an agent's requests are those of the report.
fn both(tier: &str, pattern: &str) -> String {
    let bucket = match tier {
        AGENT => Limits::Six.bucket(),
        _ => UNBOUNDED,
    };
    let name = match tier {
        AGENT => AGENT.to_owned(),
        _ => format!("{tier}-requests"),
    };
    let requests = limit(&name, pattern, "requests", bucket);
    let tokens = limit(&format!("{tier}-tokens"), pattern, "tokens", UNBOUNDED);
    requests + &tokens
}

fn limit(name: &str, pattern: &str, unit: &str, bucket: Bucket) -> String {
    let Bucket {
        capacity,
        refill_per_s,
    } = bucket;
    format!(
        "[[limit]]\nname = \"{name}\"\nmatch = \"{pattern}\"\nunit = \"{unit}\"\ncapacity = {capacity}\n\
         refill = \"{refill_per_s}/s\"\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_they_are_called() {
        let count = |limits: Limits| limits.toml().matches("[[limit]]").count();
        assert_eq!([Limits::One, Limits::Six].map(count), [1, 6]);
        for limits in [Limits::One, Limits::Six] {
            let toml = limits.toml();
            assert!(toml.contains("capacity = 100\nrefill = \"10/s\""), "{toml}");
        }
        let scarce = Limits::Scarce.toml();
        assert!(
            scarce.contains("capacity = 10000\nrefill = \"10000/s\""),
            "{scarce}"
        );
    }
}
