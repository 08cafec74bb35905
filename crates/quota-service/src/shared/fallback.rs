//! Decides takes while the shared store is unavailable, by each limit's `on_unreachable`.
//!
//! - `deny`: nothing is admitted.
//! - `allow`: everything is admitted.
//! - `degrade`: the credit leased to the node is admitted, and then the node's share of the refill:
//!   the refill since the outage began, divided by the number of nodes. The balance in the store is
//!   unknown, so the share begins empty; it holds at most the node's part of the capacity.
//!
//! With `degrade`, all nodes together admit at most the remaining credit plus the refill, whichever
//! nodes fail. The share's cells are in separate tables that are not stored. Credit granted during
//! an outage is debited in the store before anything else is asked of it.
//!
//! Budgets and slots do not refill continuously, so they have no share; neither have overridden
//! buckets. They are denied unless the limit says `allow`.
//!
//! An outage concerns the cells of an organisation, because a store may have parts: organisations
//! in one shard begin and end an outage together.

mod decide;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use quota::{Bucket, Decision, Kind, Limit, PERIOD_NS_MAX, Plan, Refused, Rules, Seed, Table};

use crate::cells::SHARDS;
use crate::outcome::{Denial, Outcome, Take};
use crate::quota_store::RemoteCell;

/// Maximum number of cells in the share of one shard; takes of further cells are unavailable during
/// the outage.
const CELLS_MAX: usize = 10_000;

/// The node's shares in outages, by shard of organisations.
pub(super) struct Shares {
    by_shard: Box<[Mutex<Option<Share>>]>,
    /// The number of shares.
    count: AtomicUsize,
}

/// The node's share of each limit during one outage.
struct Share {
    /// The time of the first failed request to the store.
    since_ns: u64,
    /// A cell that is requested to detect the end of the outage.
    probe: RemoteCell,
    /// The rules from which the share's rules derive.
    of: Arc<Rules>,
    rules: Rules,
    table: Box<Table>,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            by_shard: (0..SHARDS).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
        }
    }
}

impl Shares {
    /// Returns whether an outage of the shard is in progress.
    pub(super) fn is_open(&self, shard: u16) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.by_shard[usize::from(shard)].lock().is_some()
    }

    /// Ends the outage of a shard, because its store has answered.
    pub(super) fn end(&self, shard: u16) {
        if self.count.load(Ordering::Acquire) > 0
            && self.by_shard[usize::from(shard)].lock().take().is_some()
        {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Returns the shards with an outage, each with a cell to request.
    pub(super) fn probes(&self) -> Vec<(u16, RemoteCell)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let shares = (0..SHARDS).zip(&self.by_shard);
        let probes =
            shares.filter_map(|(shard, share)| Some((shard, share.lock().as_ref()?.probe.clone())));
        probes.collect()
    }
}

impl Share {
    fn new(nodes: u32, of: &Arc<Rules>, seed: Seed, probe: RemoteCell, now_ns: u64) -> Self {
        Self {
            since_ns: now_ns,
            probe,
            of: of.clone(),
            rules: share_of(&Rules::new(seed, 1), of, nodes, now_ns),
            table: Box::new(Table::new(seed, CELLS_MAX)),
        }
    }

    /// Switches to the current rules.
    fn follow(&mut self, nodes: u32, of: &Arc<Rules>, now_ns: u64) {
        if !Arc::ptr_eq(&self.of, of) {
            let rules = share_of(&self.rules, of, nodes, now_ns);
            self.table.follow(&self.rules, &rules, now_ns);
            (self.of, self.rules) = (of.clone(), rules);
        }
    }

    /// Takes from the share of these limits; returns the credit left of each, and whether it only
    /// reports.
    fn take(
        &mut self,
        degraded: &BTreeMap<&Arc<str>, (usize, &Arc<Limit>)>,
        take: &Take<'_>,
        now_ns: u64,
    ) -> Result<Vec<(usize, i128, bool)>, Outcome> {
        let (rules, subject) = (&self.rules, &take.subject);
        let mut plan = Plan::default();
        rules
            .plan(&mut plan, subject, take.costs)
            .map_err(Outcome::Refused)?;
        plan.retain(rules, |limit| degraded.contains_key(&limit.name));
        let unavailable = |reason: String| Err(Outcome::Unavailable { reason });
        if plan.steps().len() != degraded.len() {
            return unavailable("the store cannot be asked".to_owned());
        }
        let since_ns = self.since_ns;
        if !self
            .table
            .begin_empty(rules, &plan, subject, since_ns, now_ns)
        {
            return unavailable(NO_ROOM.to_owned());
        }
        let tables = &mut [&mut *self.table];
        match quota::decide(rules, &mut plan, subject, tables, now_ns) {
            Decision::Admitted => {}
            Decision::NoRoom(_) => return unavailable(NO_ROOM.to_owned()),
            Decision::Denied(denied) => {
                let limit = rules.limit(denied.index);
                let limit = degraded.get(&limit.name).map_or(limit, |(_, limit)| *limit);
                return Err(Outcome::Denied(Denial::new(limit, &denied, now_ns)));
            }
            Decision::Refused(Refused::AboveCapacity { capacity, need, .. }) => {
                return unavailable(format!(
                    "the store cannot be asked, and a node gives {capacity} meanwhile: {need} is \
                     more"
                ));
            }
            Decision::Refused(refused) => return Err(Outcome::Refused(refused)),
            Decision::Halted { prefix, reason } => {
                return Err(Outcome::Halted { prefix, reason });
            }
        }
        let left = plan.limit_states(rules, now_ns).filter_map(|state| {
            let (step, _) = degraded.get(&state.limit.name)?;
            Some((*step, state.have, state.shadowed.is_some()))
        });
        Ok(left.collect())
    }
}

const NO_ROOM: &str = "the store cannot be asked, and too many subjects take meanwhile";

/// Returns the rules with one node's part of each limit.
fn share_of(before: &Rules, of: &Rules, nodes: u32, now_ns: u64) -> Rules {
    let limits = of.policies().limits().iter().enumerate();
    let limits = limits.map(|(index, (_, limit))| Limit {
        kind: part_of(limit.kind, nodes),
        factor: of.dial(index).factor_at(now_ns),
        ..(**limit).clone()
    });
    // The parts are valid because the whole limits are; without valid limits nothing is granted.
    let policies = before.policies().next(limits.collect());
    before.with_policies(policies.unwrap_or_default(), now_ns)
}

/// Returns one node's part of a limit, rounded down, so that the parts never exceed the whole.
fn part_of(kind: Kind, nodes: u32) -> Kind {
    let nodes = u64::from(nodes);
    match kind {
        Kind::Bucket(Bucket {
            capacity,
            amount,
            period_ns,
        }) => {
            let longer_ns = period_ns.saturating_mul(nodes);
            let (amount, period_ns) = match longer_ns <= PERIOD_NS_MAX {
                true => (amount, longer_ns),
                false => (amount / nodes, period_ns),
            };
            Kind::Bucket(Bucket {
                capacity: capacity / nodes,
                amount,
                period_ns,
            })
        }
        Kind::Budget {
            amount,
            every,
            zone,
        } => Kind::Budget {
            amount: amount / nodes,
            every,
            zone,
        },
        Kind::Slots { capacity } => Kind::Slots {
            capacity: capacity / nodes,
        },
    }
}
