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
        error: &StoreUnavailable,
        now_ns: u64,
    ) -> DecidedTake {
        let Some(shared) = &self.state().shared else {
            return DecidedTake::unavailable(&error.reason);
        };
        let parts: Vec<_> = desk.plan.parts(rules, &take.subject, now_ns).collect();
        // The step, the credit left, and whether the limit only reports and takes nothing.
        let (mut degraded, mut answers) = (BTreeMap::new(), Vec::new());
        for (step, part) in parts.iter().enumerate() {
            let limit = rules.limit(part.index);
            let is_slots = matches!(part.kind, Kind::Slots { .. });
            let is_bucket = matches!(part.kind, Kind::Bucket(_));
            match limit.on_unreachable {
                // Slots taken now are not returned to the store later.
                Unreachable::Allow if is_slots => {}
                Unreachable::Allow => answers.push((step, i128::from(part.kind.capacity()), false)),
                Unreachable::Degrade if is_bucket && !rules.is_overridden(part, now_ns) => {
                    degraded.insert(&limit.name, (step, limit));
                }
                Unreachable::Degrade | Unreachable::Deny if part.is_enforced => {
                    return denied(&limit.name, error);
                }
                Unreachable::Degrade | Unreachable::Deny => answers.push((step, 0, true)),
            }
        }
        if let Some((step, _)) = degraded.values().next() {
            let shares = &shared.shares;
            let shard = start::shard_of(rules, &take.subject);
            let mut share = shares.by_shard[usize::from(shard)].lock();
            let share = share.get_or_insert_with(|| {
                shares.count.fetch_add(1, Ordering::AcqRel);
                let probe = RemoteCell {
                    count: 0,
                    ..cell_request::cell(&parts[*step], rules, 0)
                };
                let seed = Seed(self.service.platform.ports.entropy.next_u64());
                Share::new(shared.nodes, rules, seed, probe, now_ns)
            });
            share.follow(shared.nodes, rules, now_ns);
            match share.take(&degraded, take, now_ns) {
                Ok(left) => answers.extend(left),
                Err(outcome) => {
                    return DecidedTake {
                        is_degraded: true,
                        ..DecidedTake::at_once(outcome)
                    };
                }
            }
        }
        let mut unsent = shared.unsent.lock();
        for (step, have, is_shadowed) in answers {
            if !is_shadowed {
                unsent.add(cell_request::cell(&parts[step], rules, 0));
            }
            let answer = StoreAnswer {
                have,
                mark: None,
                touched_ns: None,
                is_shadowed,
            };
            desk.plan.tell(rules, &take.subject, step, answer, now_ns);
        }
        drop(unsent);
        self.admitted(rules, desk, take, now_ns, true)
    }
}

fn denied(limit: &str, error: &StoreUnavailable) -> DecidedTake {
    let reason = format!(
        "limit `{limit}` lies in a store that cannot be asked: {}",
        error.reason
    );
    let outcome = match error.may_be_done {
        true => Outcome::Unconfirmed { reason },
        false => Outcome::Unavailable { reason },
    };
    DecidedTake {
        is_degraded: true,
        ..DecidedTake::at_once(outcome)
    }
}
