//! `bench quota`: takes, and the answers of a rate limiter.
//!
//! | target | server |
//! |---|---|
//! | `telpher` | a node |
//! | `url` | a server that is already running, with the node's API, in place of the node |
//! | `express` | Express, ioredis and a Lua script in a Redis of its own |
//! | `throttlecrab` | that crate's server over HTTP |
//! | `http-floor` | a server with one fixed answer to every request |
//! | `redis-script` | a function in Redis, called for each take |
//!
//! A load is one process with one thread. Over HTTP it writes requests from templates and parses
//! answers no further than necessary; over the native protocol it is our own client. Its CPU per
//! request is reported next to the server's. A refused take is an answer, not an error. One
//! decision counts as one message, independent of how many share a request.
//!
//! Nodes may share a Redis. Then leases are compared with a Redis call for each take, and together
//! the nodes must not allow more than the shared bucket has.
//!
//! Every run has a server of its own; the server's usage is the sum of all its processes.

mod agents;
mod answer;
mod caller;
mod counts;
mod exact;
mod limits;
mod load;
mod matrix;
pub mod memory;
mod native;
mod pace;
mod plan;
mod request;
mod script;
mod server;
mod suite;
mod target;
mod threshold;

use serde::{Deserialize, Serialize};

use crate::measurement::Answers;
use crate::model::{CountedBy, Mode};
use crate::tally::Tally;
use crate::workload::role::{Failure, RoleSpec};

pub use exact::{Exactness, Excess, exactness, excess};
pub use limits::Limits;
pub use matrix::{Busy, Door, Matrix, Reuse, Step, Subject, Work};
pub use suite::{misses, run};
pub use threshold::{Threshold, thresholds};

/// Takes, in a closed loop or on a schedule.
pub const TAKE: Mode = Mode::new("take", CountedBy::Sender, true);
/// A fixed number of takes.
pub const COUNT: Mode = Mode::new("count", CountedBy::Sender, true);
/// Virtual users that send several requests in turn, and think.
pub const MIX: Mode = Mode::new("mix", CountedBy::Sender, true);

/// Default capacity of a bucket.
pub const CAPACITY: u64 = 100;
/// Default refill of a bucket per second.
pub const REFILL_PER_S: u64 = 10;

/// Tokens that a take costs, if it costs any.
const TOKENS: u64 = 100;

/// Parameters of a load process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LoadSpec {
    /// Addresses of the servers, in the form of the dialect. Connections are distributed over them
    /// in turn.
    addresses: Vec<String>,
    client: TakeClient,
    pace: Pace,
    agents: agents::Names,
}

impl RoleSpec for LoadSpec {
    fn role(&self) -> &'static str {
        "quota-load"
    }
}

/// Client that sends the takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TakeClient {
    /// Requests written from a template.
    Written(Dialect),
    /// Our own client over the native protocol, with `batch` takes in a request.
    Native { batch: u32, costs: TakeCost },
}

/// Request format of a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Dialect {
    /// `POST /api/request`, one take each.
    Request,
    /// `POST /v1/take` with `batch` takes, as an array if there are several.
    Take { batch: u32, costs: TakeCost },
    /// throttlecrab's `POST /throttle`.
    Throttle,
    /// Call of a Redis function, with the bucket's capacity and refill.
    Script(limits::Bucket),
}

/// Cost of a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TakeCost {
    /// A single request.
    Request,
    /// A single request and a number of tokens.
    RequestAndTokens,
}

/// Pacing of the requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pace {
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

/// Plays the role of a load.
///
/// # Errors
/// When the server cannot be reached, stops answering, or sends an invalid answer.
pub(super) fn play(spec: &LoadSpec) -> Result<(), Failure> {
    match spec.client {
        TakeClient::Written(dialect) => load::play(spec, dialect),
        TakeClient::Native { batch, costs } => native::play(spec, batch, costs),
    }
}

/// Counts of a load in its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LoadCounts {
    tally: Tally,
    answered: Answers,
    window_ns: u64,
}

impl Dialect {
    /// Returns the number of takes in a request.
    fn decisions(self) -> u32 {
        match self {
            Self::Take { batch, .. } => batch,
            Self::Request | Self::Throttle | Self::Script(_) => 1,
        }
    }
}

/// Line that a load prints when its window opens.
const STEADY: &str = "steady";
