//! Matrix of a quota suite.

use std::path::PathBuf;
use std::time::Duration;

use super::agents::{DIGITS, Names, Order};
use super::plan::{Plan, plans};
use super::target::Target;
use super::{Dialect, Limits, Pace, Reuse, Step, TakeClient};
use bench::model::{Area, Case, Mode};

/// Parameters of a quota suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Measured server.
    pub subject: Subject,
    /// Kind of load.
    pub work: Work,
    /// Numbers of agents, one case for each.
    pub agents: Vec<u32>,
    /// Duration of the warm-up, which is not counted: the load itself, or takes for other agents if
    /// the load must find full buckets.
    pub warmup: Duration,
    /// Runs of each case.
    pub repeats: u32,
    /// Directory for the data of nodes and peers; each run creates its own in it.
    pub directory: PathBuf,
}

/// Measured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Node that each run starts.
    Node,
    /// Server that is already running: `HOST:PORT`.
    Url(String),
}

/// Kind of load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Virtual users that send several requests in turn, then think.
    Mix {
        /// Number of users.
        vus: u32,
        /// Requests of a user.
        steps: Vec<Step>,
        /// Think time.
        think: Duration,
        /// Time after which no user begins a new iteration.
        window: Duration,
    },
    /// A fixed number of takes.
    Count {
        /// Number of concurrent connections.
        connections: u32,
        /// Number of takes.
        requests: u64,
        /// Reuse of connections, one case for each.
        reuse: Vec<Reuse>,
    },
    /// Takes in a closed loop.
    Closed {
        /// Connections and requests of the load.
        load: Busy,
        /// Limits on each take of our batches, one case for each.
        limits: Vec<Limits>,
    },
    /// Takes in a closed loop against nodes that share a Redis.
    Shared {
        /// Connections and requests of the load.
        load: Busy,
        /// Numbers of nodes, with cases for each.
        nodes: Vec<u32>,
    },
    /// Takes on a schedule.
    Scheduled {
        /// Maximum number of connections.
        connections: u32,
        /// Takes per second, one case for each rate.
        rates: Vec<u64>,
        /// Length of the counted window.
        window: Duration,
    },
}

/// Connections of a closed loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// Number of connections.
    pub connections: u32,
    /// Requests in flight on each, one case for each number.
    pub pipelines: Vec<u32>,
    /// Takes in a request to our node, one case for each number above one.
    pub batches: Vec<u32>,
    /// Client APIs of our node, with cases for each.
    pub doors: Vec<Door>,
    /// Length of the counted window.
    pub window: Duration,
}

/// Client API of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// HTTP/1.1.
    Http,
    /// The native protocol, with our own client.
    Native,
}

/// A case with its target and plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedCase {
    pub(super) case: Case,
    pub(super) target: Target,
    pub(super) plan: Plan,
    agents: u32,
}

/// Name of the parameter for the number of agents.
pub(super) const AGENTS: &str = "agents";

/// Size of the prefix of agent names, which differs from run to run.
const PREFIX_SIZE: usize = 9;

impl Matrix {
    /// Returns every case of one target.
    pub(super) fn askings(&self, target: Target) -> Vec<PlannedCase> {
        let plans = plans(self, target);
        let of = |count: &u32| {
            let count = *count;
            // Many agents do not empty their buckets.
            let applies = move |plan: &&Plan| count == 1 || plan.limits != Limits::Scarce;
            let applicable = plans.iter().filter(applies);
            applicable.map(move |plan| self.planned_case(target, plan, count))
        };
        self.agents.iter().flat_map(of).collect()
    }

    fn planned_case(&self, target: Target, plan: &Plan, agents: u32) -> PlannedCase {
        let (mode, connections) = match &plan.pace {
            Pace::Users { vus, .. } => (Mode::MIX, *vus),
            Pace::Count { connections, .. } => (Mode::COUNT, *connections),
            Pace::Closed { connections, .. } | Pace::Scheduled { connections, .. } => {
                (Mode::TAKE, *connections)
            }
        };
        let mut case = self.case(target, mode, connections, agents);
        match &plan.pace {
            Pace::Users {
                steps, think_ns, ..
            } => {
                let names: Vec<_> = steps.iter().map(|step| step.name()).collect();
                case = case
                    .parameter("mix", names.join(","))
                    .parameter("think_ms", think_ns / 1_000_000);
            }
            Pace::Count {
                requests, reuse, ..
            } => {
                case = case
                    .parameter("requests", requests)
                    .parameter("keep-alive", reuse.name());
            }
            Pace::Closed { pipeline, .. } => case = case.in_flight(*pipeline),
            Pace::Scheduled { rate, .. } => case = case.rate(*rate),
        }
        if let Some((name, value)) = plan.limits.parameter() {
            case = case.parameter(name, value);
        }
        if let Some(count) = plan.sharing {
            case = case.parameter("nodes", count);
        }
        PlannedCase {
            case: with_request_shape(case, plan.client),
            target,
            plan: plan.clone(),
            agents,
        }
    }

    /// Makes a case. Its message size is the size of an agent's name.
    fn case(&self, target: Target, mode: Mode, connections: u32, agents: u32) -> Case {
        Case::new(target.name(), Area::Quota, mode)
            .clients(connections)
            .size((PREFIX_SIZE + DIGITS) as u64)
            .parameter(AGENTS, agents)
    }
}

/// Adds the parameters that distinguish request shapes: client API and batch size.
fn with_request_shape(case: Case, client: TakeClient) -> Case {
    match client {
        TakeClient::Written(Dialect::Take { batch, .. }) => case.parameter("batch", batch),
        TakeClient::Written(_) => case,
        TakeClient::Native { batch, .. } => {
            let case = case.parameter("door", "native");
            match batch {
                1 => case,
                _ => case.parameter("batch", batch),
            }
        }
    }
}

impl PlannedCase {
    /// Returns the agents of run `run` of this process, which no other run uses.
    pub(super) fn names(&self, run: u32) -> Names {
        names(run, self.agents, Order::Random)
    }

    /// Returns the warm-up load, unless the beginning of the load itself is the warm-up.
    pub(super) fn warm_up(&self, warmup: Duration) -> Option<Pace> {
        let connections = match self.plan.pace {
            Pace::Users { vus, .. } => vus,
            Pace::Count { connections, .. }
            | Pace::Closed {
                connections,
                warmup_ns: 0,
                ..
            } => connections,
            Pace::Closed { .. } | Pace::Scheduled { .. } => return None,
        };
        (!warmup.is_zero()).then_some(Pace::Closed {
            connections,
            pipeline: 1,
            warmup_ns: 0,
            window_ns: warmup.as_nanos() as u64,
        })
    }

    /// Returns how many takes must be allowed within `window_ns`, if one bucket is used.
    pub(super) fn must_allow(&self, window_ns: u64) -> Option<u64> {
        match self.plan.pace {
            Pace::Count { requests, .. } if self.agents == 1 => {
                Some(requests.min(self.plan.limits.bucket().at_most(window_ns)))
            }
            _ => None,
        }
    }

    /// Returns how many takes may be allowed, if nodes share a bucket that is too small for the
    /// load.
    pub(super) fn may_allow(&self, window_ns: u64) -> Option<u64> {
        let Plan { limits, .. } = self.plan;
        (limits == Limits::Scarce).then(|| limits.bucket().at_most(window_ns))
    }
}

/// Returns agents that no other run of this or another process uses.
pub(super) fn names(run: u32, count: u32, order: Order) -> Names {
    let process = std::process::id() & 0xffff;
    let prefix = format!("b{process:04x}{:03x}-", run & 0xfff);
    debug_assert_eq!(prefix.len(), PREFIX_SIZE, "the message size in cases");
    Names {
        prefix,
        count,
        order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(work: Work) -> Matrix {
        Matrix {
            subject: Subject::Node,
            work,
            agents: vec![10_000, 1],
            warmup: Duration::ZERO,
            repeats: 1,
            directory: PathBuf::from("."),
        }
    }

    fn busy(doors: &[Door]) -> Busy {
        Busy {
            connections: 50,
            pipelines: vec![1, 16],
            batches: vec![100],
            doors: doors.to_vec(),
            window: Duration::from_secs(1),
        }
    }

    fn keys(matrix: &Matrix, target: Target) -> Vec<String> {
        let askings = matrix.askings(target);
        askings.iter().map(|one| one.case.key()).collect()
    }

    #[test]
    fn only_targets_with_batches_have_batch_cases() {
        let matrix = matrix(Work::Closed {
            load: busy(&[Door::Http]),
            limits: vec![Limits::One, Limits::Six],
        });
        let ours = keys(&matrix, Target::Node);
        assert_eq!(ours.len(), 8);
        assert_eq!(
            ours[3],
            "telpher-quota-take-c50-s17-r0-f1-agents=10000-batch=100-limits=6"
        );
        let crab = keys(&matrix, Target::Throttlecrab);
        assert_eq!(crab.len(), 4);
        assert_eq!(
            crab[1],
            "throttlecrab-quota-take-c50-s17-r0-f16-agents=10000"
        );
        assert_eq!(keys(&matrix, Target::Floor).len(), 4);
    }

    #[test]
    fn native_cases_exist_only_for_our_node() {
        let both = matrix(Work::Closed {
            load: busy(&[Door::Http, Door::Native]),
            limits: vec![Limits::One],
        });
        let ours = keys(&both, Target::Node);
        assert_eq!(ours.len(), 12);
        let native = [
            "telpher-quota-take-c50-s17-r0-f1-agents=10000-door=native",
            "telpher-quota-take-c50-s17-r0-f16-agents=10000-door=native",
            "telpher-quota-take-c50-s17-r0-f1-agents=10000-batch=100-door=native",
        ];
        assert_eq!(ours[3..6], native);
        let native_only = matrix(Work::Closed {
            load: busy(&[Door::Native]),
            limits: vec![Limits::One],
        });
        // A target with only one client API gets its cases there.
        assert_eq!(keys(&native_only, Target::Express).len(), 4);
    }

    #[test]
    fn sharing_nodes_have_plenty_and_scarce_cases() {
        let matrix = matrix(Work::Shared {
            load: busy(&[Door::Http, Door::Native]),
            nodes: vec![1, 3],
        });
        let askings = matrix.askings(Target::Node);
        let short: Vec<_> = askings
            .iter()
            .filter_map(|asking| Some((asking, asking.may_allow(2_000_000_000)?)))
            .collect();
        assert_eq!((askings.len(), short.len()), (28, 4));
        for (asking, may_allow) in short {
            assert_eq!((may_allow, asking.agents), (30_000, 1));
            // Credit leased before the window opens is not counted in it.
            assert!(asking.warm_up(Duration::from_secs(1)).is_some());
        }
        let script = keys(&matrix, Target::Script);
        assert_eq!(script.len(), 4);
        assert_eq!(
            script[0],
            "redis-script-quota-take-c50-s17-r0-f1-agents=10000-capacity=10000000"
        );
        assert!(keys(&matrix, Target::Throttlecrab).is_empty());
    }

    #[test]
    fn only_targets_with_every_endpoint_have_mix_cases() {
        let matrix = matrix(Work::Mix {
            vus: 50,
            steps: vec![Step::Health, Step::Request],
            think: Duration::from_millis(500),
            window: Duration::from_secs(30),
        });
        assert_eq!(
            keys(&matrix, Target::Express)[0],
            "express-quota-mix-c50-s17-r0-agents=10000-mix=health_request-think_ms=500"
        );
        assert!(keys(&matrix, Target::Throttlecrab).is_empty());
    }

    #[test]
    fn cases_with_one_bucket_have_an_exact_count() {
        let matrix = matrix(Work::Count {
            connections: 50,
            requests: 1_000,
            reuse: vec![Reuse::Asked, Reuse::Never],
        });
        let askings = matrix.askings(Target::Node);
        assert!(askings[0].warm_up(Duration::ZERO).is_none());
        assert!(askings[0].warm_up(Duration::from_secs(1)).is_some());
        let must_allow = |asking: &PlannedCase| asking.must_allow(1_984_000_000);
        let must: Vec<_> = askings.iter().map(must_allow).collect();
        assert_eq!(must, [None, None, Some(119), Some(119)]);
        let name = format!("{}00000000", askings[0].names(7).prefix);
        assert_eq!(name.len() as u64, askings[0].case.size);
    }
}
