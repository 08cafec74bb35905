//! Begins a take with cells in the shared store: decides it locally if possible.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quota::{Decision, Key, Prefix, Refused, Rules, Subject, Tier, When};

use super::SharedCells;
use super::cell_request::CellRequest;
use super::leases::{CellDenial, LeaseDecision};
use super::request::StoreQuery;
use crate::admission::COUNTED;
use crate::desk::Desk;
use crate::outcome::{DecidedTake, Outcome, Take, Turn, id_of};
use crate::quota_store::Verb;
use crate::service::Quotas;

/// The result of the local decision.
pub(crate) enum Begin {
    /// The take is decided.
    Done(DecidedTake),
    /// The take does not involve the store.
    Local,
    /// The store must be asked.
    Ask(StoreQuery),
}

/// Location of a plan's cells.
enum CellLocation {
    Local,
    Store,
    Both,
}

impl Quotas<'_> {
    /// Decides a take from leases and recent denials, if they suffice.
    pub(crate) fn begin_shared(
        self,
        shared: &SharedCells,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        now_ns: u64,
    ) -> Begin {
        desk.begin(rules, now_ns);
        if let Err(refused) = self.plan(rules, &mut desk.plan, take, Turn::NotWaiting) {
            return Begin::Done(DecidedTake::at_once(Outcome::Refused(refused)));
        }
        match cell_location(rules, desk, &take.subject, now_ns) {
            CellLocation::Local => return Begin::Local,
            CellLocation::Both => {
                let reason = "sends, appended_bytes and requests_in_flight are counted by each \
                              node alone: take them by themselves";
                return Begin::Done(DecidedTake::unavailable(reason));
            }
            CellLocation::Store => {}
        }
        if let Some(taken) = self.outcome_without_cells(rules, desk, take, now_ns) {
            return Begin::Done(taken);
        }
        let shard = shard_of(rules, &take.subject);
        let mut answers = std::mem::take(&mut desk.store_answers);
        answers.clear();
        let parts = desk.plan.parts(rules, &take.subject, now_ns);
        let known = shared
            .leases
            .spend(shard, parts, now_ns, |step, it| answers.push((step, it)));
        for (step, answer) in &answers {
            desk.plan.tell(rules, &take.subject, *step, *answer, now_ns);
        }
        desk.store_answers = answers;
        match known {
            LeaseDecision::Spent => {
                shared.counts.leased.fetch_add(1, Ordering::Relaxed);
                Begin::Done(self.admitted(rules, desk, take, now_ns, false))
            }
            LeaseDecision::Denied(step, denied) => {
                shared.counts.denied.fetch_add(1, Ordering::Relaxed);
                Begin::Done(self.denied_by_store(rules, desk, take, (step, denied), now_ns))
            }
            LeaseDecision::Nothing => {
                shared.counts.asked.fetch_add(1, Ordering::Relaxed);
                Begin::Ask(self.store_query(rules, desk, take, now_ns))
            }
        }
    }

    /// Returns an outcome that does not depend on the cells: a halt, an invalid cost, a repeated
    /// id.
    fn outcome_without_cells(
        self,
        rules: &Rules,
        desk: &mut Desk,
        take: &Take<'_>,
        now_ns: u64,
    ) -> Option<DecidedTake> {
        match rules.turn_down(&desk.plan, &take.subject, now_ns) {
            Err(Decision::Halted { prefix, reason }) => {
                return Some(DecidedTake::at_once(Outcome::Halted { prefix, reason }));
            }
            Err(Decision::Refused(refused)) => {
                return Some(DecidedTake::at_once(Outcome::Refused(refused)));
            }
            _ => {}
        }
        if take.hold.is_none() && take.id.is_none() {
            return None;
        }
        let shard = self.state().shard(rules.home_of(&take.subject));
        if let Some(id) = take.id
            && let Some(known) = shard.recent.get(&id_of(&take.subject, id)).copied()
        {
            drop(shard);
            return Some(self.repeated(known, take, desk.plan.is_sync(rules)));
        }
        let full = take.hold.and_then(|_| shard.holds.check_room().err());
        full.map(|full| DecidedTake::unavailable(&full.to_string()))
    }

    fn store_query(
        self,
        rules: &Arc<Rules>,
        desk: &Desk,
        take: &Take<'_>,
        now_ns: u64,
    ) -> StoreQuery {
        let lasting_ns = take.hold.map_or(0, |lasting| self.hold_ns(lasting));
        let parts = desk.plan.parts(rules, &take.subject, now_ns).enumerate();
        StoreQuery {
            rules: rules.clone(),
            shard: shard_of(rules, &take.subject),
            wanted: parts
                .map(|(step, part)| CellRequest::new(step, &part, rules, lasting_ns))
                .collect(),
            verb: Verb::Take,
        }
    }

    /// Looks at all limits of a subject whose cells are in the store; the desk has the local ones.
    pub(crate) fn look_shared(
        self,
        rules: &Arc<Rules>,
        desk: &Desk,
        subject: &Subject<'_>,
    ) -> Option<StoreQuery> {
        let parts = desk.plan.parts(rules, subject, desk.now_ns).enumerate();
        let in_store = parts.filter(|(_, part)| is_in_store(rules, part.index));
        let wanted: Vec<CellRequest> = in_store
            .map(|(step, part)| CellRequest::new(step, &part, rules, 0))
            .collect();
        (!wanted.is_empty()).then(|| StoreQuery {
            rules: rules.clone(),
            shard: shard_of(rules, subject),
            wanted,
            verb: Verb::Look,
        })
    }

    /// Returns the outcome of a take that the store denied.
    pub(crate) fn denied_by_store(
        self,
        rules: &Rules,
        desk: &mut Desk,
        take: &Take<'_>,
        (step, denied): (usize, CellDenial),
        now_ns: u64,
    ) -> DecidedTake {
        let part = desk.plan.parts(rules, &take.subject, now_ns).nth(step);
        let Some(part) = part else {
            return DecidedTake::at_once(Outcome::Refused(Refused::Nothing));
        };
        let have = i128::from(denied.have);
        let answer = quota::StoreAnswer {
            have,
            mark: None,
            touched_ns: None,
            is_shadowed: false,
        };
        desk.plan.tell(rules, &take.subject, step, answer, now_ns);
        let denied = quota::Denied {
            limit: part.key.limit,
            index: part.index,
            have,
            need: denied.need,
            when: when(&part.kind, denied.at_ns),
        };
        self.denied(rules, take, &denied, now_ns)
    }
}

fn when(kind: &quota::Kind, at_ns: Option<u64>) -> When {
    match (kind, at_ns) {
        (quota::Kind::Slots { .. }, _) => When::Release,
        (_, None) => When::Never,
        (quota::Kind::Bucket(_), Some(at_ns)) => When::At(at_ns),
        (quota::Kind::Budget { .. }, Some(at_ns)) => When::Period(at_ns),
    }
}

/// Returns whether the cells of a limit are in the store; those of units that listeners count are
/// not.
pub(super) fn is_in_store(rules: &Rules, index: usize) -> bool {
    !COUNTED.contains(&rules.limit(index).unit)
}

fn cell_location(rules: &Rules, desk: &Desk, subject: &Subject<'_>, now_ns: u64) -> CellLocation {
    let mut is_any = (false, false);
    for part in desk.plan.parts(rules, subject, now_ns) {
        match is_in_store(rules, part.index) {
            true => is_any.1 = true,
            false => is_any.0 = true,
        }
    }
    match is_any {
        (_, false) => CellLocation::Local,
        (false, true) => CellLocation::Store,
        (true, true) => CellLocation::Both,
    }
}

/// Returns the shard of a subject's entries, by its organisation.
pub(super) fn shard_of(rules: &Rules, subject: &Subject<'_>) -> u16 {
    shard_of_name(rules, subject.prefix(Tier::Org))
}

/// Returns the shard of an organisation's entries.
pub(super) fn shard_of_name(rules: &Rules, name: &str) -> u16 {
    rules.table_of_key(Key {
        limit: quota::LimitId(0),
        prefix: Prefix { name, run: "" },
    })
}
