//! Decisions about takes while the store is unreachable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quota::{Kind, Rules, Seed, StoreAnswer, Unreachable};

use super::Share;
use crate::desk::Desk;
use crate::outcome::{DecidedTake, Outcome, Take};
use crate::quota_store::{RemoteCell, StoreUnavailable};
use crate::service::Quotas;
use crate::shared::{cell_request, start};

impl Quotas<'_> {
    /// Decides a take without an answer of the store.
    pub(crate) fn without_store(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        away: &StoreUnavailable,
        now_ns: u64,
    ) -> DecidedTake {
        let Some(elsewhere) = &self.state().elsewhere else {
            return DecidedTake::unavailable(&away.reason);
        };
        let parts: Vec<_> = desk.plan.parts(rules, &take.subject, now_ns).collect();
        // The step, the credit left, and whether the limit only reports and takes nothing.
        let (mut shared, mut told) = (BTreeMap::new(), Vec::new());
        for (step, part) in parts.iter().enumerate() {
            let limit = rules.limit(part.index);
            let is_slots = matches!(part.kind, Kind::Slots { .. });
            let is_bucket = matches!(part.kind, Kind::Bucket(_));
            match limit.on_unreachable {
                // Slots taken now are not returned to the store later.
                Unreachable::Allow if is_slots => {}
                Unreachable::Allow => told.push((step, i128::from(part.kind.capacity()), false)),
                Unreachable::Degrade if is_bucket && !rules.is_overridden(part, now_ns) => {
                    shared.insert(&limit.name, (step, limit));
                }
                Unreachable::Degrade | Unreachable::Deny if part.is_enforced => {
                    return denied(&limit.name, away);
                }
                Unreachable::Degrade | Unreachable::Deny => told.push((step, 0, true)),
            }
        }
        if let Some((step, _)) = shared.values().next() {
            let shares = &elsewhere.shares;
            let shard = start::shard_of(rules, &take.subject);
            let mut share = shares.by_shard[usize::from(shard)].lock();
            let share = share.get_or_insert_with(|| {
                shares.count.fetch_add(1, Ordering::AcqRel);
                let probe = RemoteCell {
                    count: 0,
                    ..cell_request::cell(&parts[*step], rules, 0)
                };
                let seed = Seed(self.service.platform.ports.entropy.next_u64());
                Share::new(elsewhere.nodes, rules, seed, probe, now_ns)
            });
            share.follow(elsewhere.nodes, rules, now_ns);
            match share.take(&shared, take, now_ns) {
                Ok(left) => told.extend(left),
                Err(outcome) => {
                    return DecidedTake {
                        is_degraded: true,
                        ..DecidedTake::at_once(outcome)
                    };
                }
            }
        }
        let mut owed = elsewhere.owed.lock();
        for (step, have, is_shadowed) in told {
            if !is_shadowed {
                owed.add(cell_request::cell(&parts[step], rules, 0));
            }
            let told = StoreAnswer {
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

fn denied(limit: &str, away: &StoreUnavailable) -> DecidedTake {
    let reason = format!(
        "limit `{limit}` lies in a store that cannot be asked: {}",
        away.reason
    );
    let outcome = match away.may_be_done {
        true => Outcome::Unconfirmed { reason },
        false => Outcome::Unavailable { reason },
    };
    DecidedTake {
        is_degraded: true,
        ..DecidedTake::at_once(outcome)
    }
}
