//! What a node gives while the store cannot be asked, as each limit says.
//!
//! - `deny`: nothing.
//! - `allow`: everything.
//! - `degrade`: its share of the limit: one part in as many as there are nodes, of the capacity and
//!   of what comes back. The share's cells lie here, in a table of their own that nobody keeps.
//!
//! What was given is owed to the store, so that it counts when it is there again. Slots have no
//! share, as they are given back to whoever counts them, and neither has what an override stands for:
//! while it is away they are denied unless all of them are allowed.

use std::collections::BTreeMap;
use std::sync::Arc;

use quota::{
    Bucket, Decision, Kind, Limit, PERIOD_NS_MAX, Plan, Refused, Rules, Seed, Table, Told,
    Unreachable,
};

use super::wanted;
use crate::ports::quota_store::Away;
use crate::quotas::{Denial, Desk, Outcome, Quotas, Take, Taken};

/// Cells of a node's share at most; who is new then shares one with others.
const CELLS_MAX: usize = 100_000;

/// A node's share of each limit.
#[derive(Default)]
pub(super) struct Share(Option<Standing>);

struct Standing {
    /// Of these rules.
    of: Arc<Rules>,
    rules: Rules,
    table: Box<Table>,
}

impl Quotas<'_> {
    /// Decides a take that the store was not asked about, or did not answer.
    pub(super) fn without_store(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        away: &Away,
        now_ns: u64,
    ) -> Taken {
        let Some(elsewhere) = self.state().elsewhere.get() else {
            return Taken::unavailable(&away.reason);
        };
        let parts: Vec<_> = desk.plan.parts(rules, &take.subject, now_ns).collect();
        // Steps, what is left, and whether nothing is taken as the limit only says so.
        let (mut shared, mut told) = (BTreeMap::new(), Vec::new());
        for (step, part) in parts.iter().enumerate() {
            let limit = rules.limit(part.index);
            let is_slots = matches!(part.kind, Kind::Slots { .. });
            match limit.on_unreachable {
                // Who takes slots now does not give them back to the store.
                Unreachable::Allow if is_slots => {}
                Unreachable::Allow => told.push((step, i128::from(part.kind.capacity()), false)),
                Unreachable::Degrade if !is_slots && !rules.is_overridden(part, now_ns) => {
                    shared.insert(&limit.name, (step, limit));
                }
                Unreachable::Degrade | Unreachable::Deny if part.is_enforced => {
                    return denied(&limit.name, away);
                }
                Unreachable::Degrade | Unreachable::Deny => told.push((step, 0, true)),
            }
        }
        let mut share = elsewhere.share.lock();
        let seed = || Seed(self.inner.ports.entropy.next_u64());
        let standing = share.standing(elsewhere.nodes, rules, seed, now_ns);
        match standing.take(&shared, take, now_ns) {
            Ok(left) => told.extend(left),
            Err(outcome) => {
                return Taken {
                    is_degraded: true,
                    ..Taken::at_once(outcome)
                };
            }
        }
        drop(share);
        let mut owed = elsewhere.owed.lock();
        for (step, have, is_shadowed) in told {
            if !is_shadowed {
                owed.add(wanted::cell(&parts[step], rules, 0));
            }
            let told = Told {
                have,
                mark: None,
                touched_ns: None,
                is_shadowed,
            };
            desk.plan.tell(rules, &take.subject, step, told, now_ns);
        }
        drop(owed);
        self.admitted(rules, desk, take, now_ns, true)
    }
}

fn denied(limit: &str, away: &Away) -> Taken {
    let reason = format!(
        "limit `{limit}` lies in a store that cannot be asked: {}",
        away.reason
    );
    let outcome = match away.may_be_done {
        true => Outcome::Unconfirmed { reason },
        false => Outcome::Unavailable { reason },
    };
    Taken {
        is_degraded: true,
        ..Taken::at_once(outcome)
    }
}

impl Share {
    /// As the rules stand now.
    fn standing(
        &mut self,
        nodes: u32,
        of: &Arc<Rules>,
        seed: impl FnOnce() -> Seed,
        now_ns: u64,
    ) -> &mut Standing {
        let standing = match self.0.take() {
            Some(standing) if Arc::ptr_eq(&standing.of, of) => standing,
            Some(mut before) => {
                let rules = share_of(&before.rules, of, nodes, now_ns);
                before.table.follow(&before.rules, &rules, now_ns);
                let of = of.clone();
                Standing {
                    of,
                    rules,
                    ..before
                }
            }
            None => {
                let seed = seed();
                Standing {
                    of: of.clone(),
                    rules: share_of(&Rules::new(seed, 1), of, nodes, now_ns),
                    table: Box::new(Table::new(seed, CELLS_MAX)),
                }
            }
        };
        self.0.insert(standing)
    }
}

impl Standing {
    /// Takes from the share of those limits: what is left of each, and whether it only says so.
    fn take(
        &mut self,
        shared: &BTreeMap<&Arc<str>, (usize, &Arc<Limit>)>,
        take: &Take<'_>,
        now_ns: u64,
    ) -> Result<Vec<(usize, i128, bool)>, Outcome> {
        let (rules, subject) = (&self.rules, &take.subject);
        let mut plan = Plan::default();
        rules
            .plan(&mut plan, subject, take.costs)
            .map_err(Outcome::Refused)?;
        plan.retain(rules, |limit| shared.contains_key(&limit.name));
        let unavailable = |reason: String| Err(Outcome::Unavailable { reason });
        if plan.steps().len() != shared.len() {
            return unavailable("the store cannot be asked".to_owned());
        }
        loop {
            let tables = &mut [&mut *self.table];
            match quota::decide(rules, &mut plan, subject, tables, now_ns) {
                Decision::Admitted => break,
                Decision::NoRoom(step) => plan.overflow(rules, step),
                Decision::Denied(denied) => {
                    let limit = rules.limit(denied.index);
                    let limit = shared.get(&limit.name).map_or(limit, |(_, limit)| *limit);
                    return Err(Outcome::Denied(Denial::new(limit, &denied, now_ns)));
                }
                Decision::Refused(Refused::AboveCapacity { capacity, need, .. }) => {
                    return unavailable(format!(
                        "the store cannot be asked, and a node gives {capacity} meanwhile: {need} \
                         is more"
                    ));
                }
                Decision::Refused(refused) => return Err(Outcome::Refused(refused)),
                Decision::Halted { prefix, reason } => {
                    return Err(Outcome::Halted { prefix, reason });
                }
            }
        }
        let left = plan.standings(rules, now_ns).filter_map(|standing| {
            let (step, _) = shared.get(&standing.limit.name)?;
            Some((*step, standing.have, standing.shadowed.is_some()))
        });
        Ok(left.collect())
    }
}

/// The same limits for one of several nodes.
fn share_of(before: &Rules, of: &Rules, nodes: u32, now_ns: u64) -> Rules {
    let limits = of.policies().limits().iter().enumerate();
    let limits = limits.map(|(index, (_, limit))| Limit {
        kind: part_of(limit.kind, nodes),
        factor: of.dial(index).factor_at(now_ns),
        ..(**limit).clone()
    });
    // They make sense as the whole does; without any, nothing is given.
    let policies = before.policies().next(limits.collect());
    before.with_policies(policies.unwrap_or_default(), now_ns)
}

/// What is left over when something is divided nobody gives.
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
            offset_s,
        } => Kind::Budget {
            amount: amount / nodes,
            every,
            offset_s,
        },
        Kind::Slots { capacity } => Kind::Slots {
            capacity: capacity / nodes,
        },
    }
}
