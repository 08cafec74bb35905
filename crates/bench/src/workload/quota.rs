//! `bench quota`: takes that a limiter is asked for, and what it answers.
//!
//! | target | what it is |
//! |---|---|
//! | `telpher` | a node |
//! | `url` | a server that runs already, with the same surface, in place of the node |
//! | `express` | Express, ioredis and a Lua script in a Redis of its own |
//! | `throttlecrab` | that crate's server over HTTP |
//! | `http-floor` | the same answer to every request |
//! | `redis-script` | a function in a Redis, called for each take |
//!
//! A load is one process with one thread. Over HTTP it writes requests from templates and looks at answers
//! no further than it must; over the native protocol it is our own client. Its own time per request is told
//! beside the server's. A refused take is an
//! answer, not an error. One decision counts as one message, however many share a request.
//!
//! Nodes may share a Redis: then leases are held against a call for each take, and of what they share they must
//! not allow more than there is.
//!
//! Every run has a server of its own; what a server used is that of all its processes.

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

use crate::measurement::Answered;
use crate::model::{CountedBy, Mode};
use crate::tally::Tally;
use crate::workload::role::Failure;

pub use exact::{Exactness, Excess, exactness, excess};
pub use limits::Limits;
pub use matrix::{Busy, Door, Matrix, Reuse, Step, Subject, Work};
pub use suite::{misses, run};
pub use threshold::{Threshold, thresholds};

/// Takes as fast as they are answered, or on a schedule.
pub const TAKE: Mode = Mode::new("take", CountedBy::Sender, true);
/// A number of takes.
pub const COUNT: Mode = Mode::new("count", CountedBy::Sender, true);
/// Virtual users who ask several things in turn, and think.
pub const MIX: Mode = Mode::new("mix", CountedBy::Sender, true);

/// What a bucket holds unless told otherwise.
pub const CAPACITY: u64 = 100;
/// How many come back each second.
pub const REFILL_PER_S: u64 = 10;

/// Tokens that a take costs, where it costs any.
const TOKENS: u64 = 100;

/// What a load does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LoadSpec {
    /// Where it is asked, each as its dialect has it: connections go to one after the other.
    addresses: Vec<String>,
    way: Way,
    pace: Pace,
    agents: agents::Names,
}

/// Who puts takes to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    /// Requests written from a template.
    Written(Dialect),
    /// Our own client, over the native protocol: so many takes in a question.
    Native { batch: u32, costs: Costs },
}

/// How a take is put to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Dialect {
    /// `POST /api/request`, a take each.
    Request,
    /// `POST /v1/take` with so many takes, an array unless it is one.
    Take { batch: u32, costs: Costs },
    /// throttlecrab's `POST /throttle`.
    Throttle,
    /// A call of a function in a Redis, with the bucket's capacity and refill.
    Script(limits::Bucket),
}

/// What a take costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Costs {
    /// A request.
    Request,
    /// A request and tokens.
    RequestAndTokens,
}

/// When requests leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pace {
    /// Users who ask the steps in turn, then think; who is at it when the window ends comes to its end.
    Users {
        vus: u32,
        steps: Vec<Step>,
        think_ns: u64,
        window_ns: u64,
    },
    /// So many requests, each as soon as its connection is free.
    Count {
        connections: u32,
        pipeline: u32,
        requests: u64,
        reuse: Reuse,
    },
    /// As fast as they are answered, until the window ends.
    Closed {
        connections: u32,
        pipeline: u32,
        warmup_ns: u64,
        window_ns: u64,
    },
    /// On a schedule, whatever the server does; one that finds no free connection waits for it.
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
/// When the server cannot be reached, falls silent, or answers in a way that cannot be read.
pub(super) fn play(spec: &LoadSpec) -> Result<(), Failure> {
    match spec.way {
        Way::Written(dialect) => load::play(spec, dialect),
        Way::Native { batch, costs } => native::play(spec, batch, costs),
    }
}

/// What a load counted in its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    tally: Tally,
    answered: Answered,
    window_ns: u64,
}

impl Dialect {
    /// Takes in a request.
    fn decisions(self) -> u32 {
        match self {
            Self::Take { batch, .. } => batch,
            Self::Request | Self::Throttle | Self::Script(_) => 1,
        }
    }
}

/// What a load says when its window opens.
const STEADY: &str = "steady";
