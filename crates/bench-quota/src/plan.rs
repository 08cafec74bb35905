//! Loads that a target gets, without the agents.

use super::matrix::{Busy, Door, Work};
use super::target::Target;
use super::{Dialect, Limits, Matrix, Pace, TakeClient};

/// A load, and the servers that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) client: TakeClient,
    pub(super) pace: Pace,
    pub(super) limits: Limits,
    /// Number of nodes that share a Redis, if they do.
    pub(super) sharing: Option<u32>,
}

impl Plan {
    fn of(target: Target, pace: Pace) -> Self {
        Self {
            client: TakeClient::Written(target.dialect(Limits::One)),
            pace,
            limits: Limits::One,
            sharing: None,
        }
    }
}

/// Returns every load for this target.
pub(super) fn plans(matrix: &Matrix, target: Target) -> Vec<Plan> {
    let warmup_ns = matrix.warmup.as_nanos() as u64;
    match &matrix.work {
        Work::Mix {
            vus,
            steps,
            think,
            window,
        } if target.has_surface() => {
            let pace = Pace::Users {
                vus: *vus,
                steps: steps.clone(),
                think_ns: think.as_nanos() as u64,
                window_ns: window.as_nanos() as u64,
            };
            vec![Plan::of(target, pace)]
        }
        Work::Mix { .. } => Vec::new(),
        Work::Count {
            connections,
            requests,
            reuse,
        } if target != Target::Floor => {
            let pace = |reuse: &_| Pace::Count {
                connections: *connections,
                pipeline: 1,
                requests: *requests,
                reuse: *reuse,
            };
            let paces = reuse.iter().map(pace);
            paces.map(|pace| Plan::of(target, pace)).collect()
        }
        Work::Count { .. } => Vec::new(),
        Work::Closed { load, limits } => load.single_server_plans(target, limits, warmup_ns),
        Work::Scheduled {
            connections,
            rates,
            window,
        } => {
            let pace = |rate: &u64| Pace::Scheduled {
                connections: *connections,
                rate: *rate,
                warmup_ns,
                window_ns: window.as_nanos() as u64,
            };
            let paces = rates.iter().map(pace);
            paces.map(|pace| Plan::of(target, pace)).collect()
        }
        Work::Shared { load, nodes } => load.shared_redis_plans(target, nodes, warmup_ns),
    }
}

impl Busy {
    /// Returns the loads for a server that shares nothing.
    fn single_server_plans(&self, target: Target, limits: &[Limits], warmup_ns: u64) -> Vec<Plan> {
        let mut plans = Vec::new();
        for door in self.doors_of(target) {
            plans.extend(self.single_take_plans(target, *door, Limits::One, warmup_ns));
            for limits in limits {
                plans.extend(self.batch_plans(target, *door, *limits, warmup_ns));
            }
        }
        plans
    }

    /// Returns the loads for nodes that share a Redis, and for Redis alone. With a sufficient
    /// bucket the rate is measured. With a scarce one the number of admitted takes is measured, so
    /// nothing may be leased in advance.
    fn shared_redis_plans(&self, target: Target, nodes: &[u32], warmup_ns: u64) -> Vec<Plan> {
        match target {
            Target::Node => {}
            Target::Script => {
                return self.single_take_plans(target, Door::Http, Limits::Plenty, warmup_ns);
            }
            _ => return Vec::new(),
        }
        let mut plans = Vec::new();
        for count in nodes {
            let mut loads = Vec::new();
            for door in self.doors_of(target) {
                loads.extend(self.single_take_plans(target, *door, Limits::Plenty, warmup_ns));
                loads.extend(self.batch_plans(target, *door, Limits::Plenty, warmup_ns));
                loads.extend(
                    self.single_take_plans(target, *door, Limits::Scarce, 0)
                        .pop(),
                );
            }
            let sharing = Some(*count);
            plans.extend(loads.into_iter().map(|plan| Plan { sharing, ..plan }));
        }
        plans
    }

    /// Returns the client APIs of a target.
    fn doors_of(&self, target: Target) -> &[Door] {
        match target.is_native() {
            true => &self.doors,
            false => &[Door::Http],
        }
    }

    /// Returns loads with one take in a request.
    fn single_take_plans(
        &self,
        target: Target,
        door: Door,
        limits: Limits,
        warmup_ns: u64,
    ) -> Vec<Plan> {
        let client = match door {
            Door::Http => TakeClient::Written(target.dialect(limits)),
            Door::Native => TakeClient::Native {
                batch: 1,
                costs: limits.costs(),
            },
        };
        let plan = |pipeline: &u32| self.plan(client, *pipeline, limits, warmup_ns);
        self.pipelines.iter().map(plan).collect()
    }

    /// Returns loads with several takes in a request, if the target supports them.
    fn batch_plans(&self, target: Target, door: Door, limits: Limits, warmup_ns: u64) -> Vec<Plan> {
        if !target.has_batches() {
            return Vec::new();
        }
        let costs = limits.costs();
        let plan = |batch: &u32| {
            let batch = *batch;
            let client = match door {
                Door::Http => TakeClient::Written(Dialect::Take { batch, costs }),
                Door::Native => TakeClient::Native { batch, costs },
            };
            self.plan(client, 1, limits, warmup_ns)
        };
        self.batches.iter().map(plan).collect()
    }

    fn plan(&self, client: TakeClient, pipeline: u32, limits: Limits, warmup_ns: u64) -> Plan {
        let pace = Pace::Closed {
            connections: self.connections,
            pipeline,
            warmup_ns,
            window_ns: self.window.as_nanos() as u64,
        };
        Plan {
            client,
            pace,
            limits,
            sharing: None,
        }
    }
}
