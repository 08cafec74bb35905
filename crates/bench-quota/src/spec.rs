//! Parameters of a load process, and its counts.

use bench::measurement::Answers;
use bench::tally::Tally;
use bench::workload::role::RoleSpec;
use serde::{Deserialize, Serialize};

use super::agents::Names;
use super::limits::{Bucket, TakeCost};

/// Parameters of a load process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Addresses of the servers, in the form of the dialect. Connections are distributed over them
    /// in turn.
    pub(crate) addresses: Vec<String>,
    pub(crate) client: TakeClient,
    pub(crate) pace: Pace,
    pub(crate) agents: Names,
}

impl RoleSpec for LoadSpec {
    fn role(&self) -> &'static str {
        "quota-load"
    }
}

/// Client that sends the takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TakeClient {
    /// Requests written from a template.
    Written(Dialect),
    /// Our own client over the native protocol, with `batch` takes in a request.
    Native { batch: u32, costs: TakeCost },
}

/// Request format of a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Dialect {
    /// `POST /api/request`, one take each.
    Request,
    /// `POST /v1/take` with `batch` takes, as an array if there are several.
    Take { batch: u32, costs: TakeCost },
    /// throttlecrab's `POST /throttle`.
    Throttle,
    /// Call of a Redis function, with the bucket's capacity and refill.
    Script(Bucket),
}

/// Pacing of the requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pace {
    /// Users that send the steps in turn, then think. Iterations that run at the end of the window
    /// are completed.
    Users {
        vus: u32,
        steps: Vec<Step>,
        think_ns: u64,
        window_ns: u64,
    },
    /// A fixed number of requests, each as soon as its connection is free.
    Count {
        connections: u32,
        pipeline: u32,
        requests: u64,
        reuse: Reuse,
    },
    /// Closed loop until the window ends.
    Closed {
        connections: u32,
        pipeline: u32,
        warmup_ns: u64,
        window_ns: u64,
    },
    /// Fixed schedule, independent of the server. A request without a free connection waits for
    /// one.
    Scheduled {
        connections: u32,
        rate: u64,
        warmup_ns: u64,
        window_ns: u64,
    },
}

/// Counts of a load in its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoadCounts {
    pub(crate) tally: Tally,
    pub(crate) answered: Answers,
    pub(crate) window_ns: u64,
}

impl Dialect {
    /// Returns the number of takes in a request.
    pub(crate) fn decisions(self) -> u32 {
        match self {
            Self::Take { batch, .. } => batch,
            Self::Request | Self::Throttle | Self::Script(_) => 1,
        }
    }
}

/// Request of a virtual user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// `GET /health`.
    Health,
    /// `POST /api/request`.
    Request,
    /// `GET /api/quota/:agentId`.
    Quota,
    /// `GET /api/test-rate-limit`.
    Test,
}

/// Reuse of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// HTTP/1.1, which keeps connections alive.
    Kept,
    /// HTTP/1.0 with keep-alive on request: Apache Bench with `-k`.
    Asked,
    /// HTTP/1.0 with a connection for each request: Apache Bench without `-k`.
    Never,
}

impl Step {
    /// Returns the name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Request => "request",
            Self::Quota => "quota",
            Self::Test => "test",
        }
    }
}

impl Reuse {
    /// Returns the name in cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "http-1.1",
            Self::Asked => "on",
            Self::Never => "off",
        }
    }
}

/// Line that a load prints when its window opens.
pub(crate) const STEADY: &str = "steady";
