//! The limits that a node of ours has in a run.

use super::{CAPACITY, Costs, REFILL_PER_S};

/// How many limits cover a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// The agent's requests, as in the report.
    One,
    /// Requests and tokens of the organisation, of the namespace and of the agent: all must agree.
    Six,
}

/// Enough that a load of ours does not get to the bottom of it: what the upper tiers cost is asked, not
/// what they refuse.
const PLENTY: u64 = 1_000_000_000;

/// The agents' limit of requests: by this name the report's surface says how they stand.
const AGENT: &str = "agent";

/// The patterns of the tiers, the agent's last.
const TIERS: [(&str, &str); 3] = [
    ("organisation", "*"),
    ("namespace", "*/*"),
    (AGENT, "*/*/*"),
];

impl Limits {
    /// How many there are.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Six => 6,
        }
    }

    pub(super) fn costs(self) -> Costs {
        match self {
            Self::One => Costs::Request,
            Self::Six => Costs::RequestAndTokens,
        }
    }

    /// As a node's configuration has them.
    pub(super) fn toml(self) -> String {
        match self {
            Self::One => limit(AGENT, "*/*/*", "requests", CAPACITY, REFILL_PER_S),
            Self::Six => TIERS
                .iter()
                .map(|(tier, pattern)| both(tier, pattern))
                .collect(),
        }
    }
}

/// A tier's limits of both units; an agent's requests are those of the report.
fn both(tier: &str, pattern: &str) -> String {
    let (capacity, refill) = match tier {
        AGENT => (CAPACITY, REFILL_PER_S),
        _ => (PLENTY, PLENTY),
    };
    let name = match tier {
        AGENT => AGENT.to_owned(),
        _ => format!("{tier}-requests"),
    };
    let requests = limit(&name, pattern, "requests", capacity, refill);
    let tokens = limit(&format!("{tier}-tokens"), pattern, "tokens", PLENTY, PLENTY);
    requests + &tokens
}

fn limit(name: &str, pattern: &str, unit: &str, capacity: u64, refill_per_s: u64) -> String {
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
        for limits in [Limits::One, Limits::Six] {
            let toml = limits.toml();
            assert_eq!(
                toml.matches("[[limit]]").count() as u32,
                limits.count(),
                "{toml}"
            );
            assert!(toml.contains("capacity = 100\nrefill = \"10/s\""), "{toml}");
        }
    }
}
