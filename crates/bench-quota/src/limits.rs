//! Limits of our node in a run.

use serde::{Deserialize, Serialize};

/// Default capacity of a bucket.
pub(crate) const CAPACITY: u64 = 100;
/// Default refill of a bucket per second.
pub(crate) const REFILL_PER_S: u64 = 10;

/// Tokens that a take costs, if it costs any.
pub(crate) const TOKENS: u64 = 100;

/// Cost of a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TakeCost {
    /// A single request.
    Request,
    /// A single request and a number of tokens.
    RequestAndTokens,
}

/// Number and size of the limits that apply to a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// The agent's requests, as in the report.
    One,
    /// Requests and tokens of the organisation, the namespace and the agent: all six must admit the
    /// take.
    Six,
    /// The agent's requests, with a bucket that is never empty.
    Plenty,
    /// The agent's requests, with a large bucket that the load always empties.
    Scarce,
}

/// Bucket of an agent's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bucket {
    pub(super) capacity: u64,
    pub(super) refill_per_s: u64,
}

impl Bucket {
    /// Returns how many takes of one a full bucket admits within `window_ns`.
    pub(super) fn at_most(self, window_ns: u64) -> u64 {
        let refilled = u128::from(window_ns) * u128::from(self.refill_per_s) / 1_000_000_000;
        let refilled = u64::try_from(refilled).unwrap_or(u64::MAX);
        self.capacity.saturating_add(refilled)
    }
}

/// Bucket that no load exhausts: the case measures the cost of the upper tiers, not their denials.
const UNBOUNDED: Bucket = Bucket {
    capacity: 1_000_000_000,
    refill_per_s: 1_000_000_000,
};

/// Name of the limit on an agent's requests; the report's API shows its state under this name.
const AGENT: &str = "agent";

/// Patterns of the tiers, the agent's last.
const TIERS: [(&str, &str); 3] = [
    ("organisation", "*"),
    ("namespace", "*/*"),
    (AGENT, "*/*/*"),
];

impl Limits {
    /// Returns the bucket of an agent's requests.
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

    /// Returns the parameter that distinguishes cases with these limits; `None` for the report's.
    pub(super) fn parameter(self) -> Option<(&'static str, u64)> {
        match self {
            Self::One => None,
            Self::Six => Some(("limits", 6)),
            Self::Plenty | Self::Scarce => Some(("capacity", self.bucket().capacity)),
        }
    }

    pub(super) fn costs(self) -> TakeCost {
        match self {
            Self::One | Self::Plenty | Self::Scarce => TakeCost::Request,
            Self::Six => TakeCost::RequestAndTokens,
        }
    }

    /// Renders the limits as a node's configuration.
    pub(super) fn toml(self) -> String {
        match self {
            Self::One | Self::Plenty | Self::Scarce => {
                limit(AGENT, "*/*/*", "requests", self.bucket())
            }
            Self::Six => TIERS
                .iter()
                .map(|(tier, pattern)| tier_limits(tier, pattern))
                .collect(),
        }
    }
}

/// Renders a tier's limits of requests and tokens. The agent's requests are those of the report.
fn tier_limits(tier: &str, pattern: &str) -> String {
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
    fn the_count_matches_the_report() {
        let at_most = |window_ns| Limits::One.bucket().at_most(window_ns);
        // 1,000 requests at 503.91 a second.
        assert_eq!(at_most(1_984_000_000), 119);
        assert_eq!(at_most(99_999_999), 100);
        assert_eq!(at_most(u64::MAX), 100 + 184_467_440_737);
    }

    #[test]
    fn limits_have_the_number_in_their_name() {
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
