//! Targets of takes, and their capabilities.

use std::path::Path;

use super::{Dialect, Limits};
use bench::workload::surroundings::OURS;

/// A target of takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Our own node.
    Node,
    /// Server that is already running.
    Url,
    /// Express, ioredis and a Lua script.
    Express,
    /// throttlecrab over HTTP.
    Throttlecrab,
    /// Server with one fixed answer to every request.
    Floor,
    /// Redis function, called directly for each take.
    Script,
}

impl Target {
    /// Targets from the directory of peers.
    pub(super) const PEERS: [Self; 3] = [Self::Express, Self::Throttlecrab, Self::Floor];

    /// Returns the name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => OURS,
            Self::Url => "url",
            Self::Express => "express",
            Self::Throttlecrab => "throttlecrab",
            Self::Floor => "http-floor",
            Self::Script => "redis-script",
        }
    }

    /// Returns the request format of a take, with the agents' buckets of `limits`.
    pub(super) fn dialect(self, limits: Limits) -> Dialect {
        match self {
            Self::Throttlecrab => Dialect::Throttle,
            Self::Script => Dialect::Script(limits.bucket()),
            Self::Node | Self::Url | Self::Express | Self::Floor => Dialect::Request,
        }
    }

    /// Returns true if the target has every endpoint of the report.
    pub(super) fn has_surface(self) -> bool {
        matches!(self, Self::Node | Self::Url | Self::Express)
    }

    /// Returns true if the target supports several takes in a request.
    pub(super) fn has_batches(self) -> bool {
        matches!(self, Self::Node | Self::Url)
    }

    /// Returns true if the target speaks the native protocol.
    pub(super) fn is_native(self) -> bool {
        self == Self::Node
    }

    /// Returns the programs that must be in the directory of peers, the server first.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Node | Self::Url => &[],
            Self::Express => &["quota-express", "redis-server"],
            Self::Throttlecrab => &["throttlecrab-server"],
            Self::Floor => &["floors"],
            Self::Script => &["redis-server"],
        }
    }

    /// Returns true if the target is installed.
    #[must_use]
    pub fn is_in(self, directory: &Path) -> bool {
        let is_there = |program: &&str| directory.join(program).is_file();
        self.programs().iter().all(is_there)
    }

    /// Describes the target and its set-up.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Node => {
                "`telpher serve` with its data on the disk; one limit as in the report; six limits are \
                 three tiers with two units each"
            }
            Self::Url => "a server that is already running: its CPU time and memory are unknown",
            Self::Express => {
                "Express 4.18 and ioredis, one process; a Lua script with each take in a Redis of its own that \
                 appends to a file and syncs it every second; it logs nothing. CPU and memory are the sum of both"
            }
            Self::Throttlecrab => {
                "throttlecrab-server over HTTP with its defaults; `POST /throttle` with the same capacity and rate"
            }
            Self::Script => {
                "a function in a Redis that appends to a file and syncs it every second, called once for each take by \
                 the generator itself; it has one bucket per agent and no other limit"
            }
            Self::Floor => {
                "one fixed answer to every request: the cost of the generator and the kernel"
            }
        }
    }
}
