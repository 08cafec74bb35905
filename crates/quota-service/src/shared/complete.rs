//! Finishes a take with cells in the shared store: stores its hold and id on the node.

use std::sync::Arc;

use quota::Rules;

use super::request::{Answer, Verdict};
use crate::cells::LockedShard;
use crate::desk::Desk;
use crate::outcome::Note;
use crate::outcome::{DecidedTake, Outcome, Take};
use crate::service::Quotas;
use platform::Durable;

impl Quotas<'_> {
    /// Returns the outcome of a take that the store was asked about.
    pub(crate) fn finish_shared(
        self,
        desk: &mut Desk,
        take: &Take<'_>,
        answer: Answer,
    ) -> DecidedTake {
        let (rules, now_ns) = (answer.rules, self.now_ns());
        desk.begin(&rules, now_ns);
        if let Err(refused) = rules.plan(&mut desk.plan, &take.subject, take.costs) {
            return DecidedTake::at_once(Outcome::Refused(refused));
        }
        for (step, answer) in answer.cells {
            desk.plan.tell(&rules, &take.subject, step, answer, now_ns);
        }
        match answer.verdict {
            Verdict::Passed => self.admitted(&rules, desk, take, now_ns, false),
            Verdict::Denied(step, denied) => {
                self.denied_by_store(&rules, desk, take, (step, denied), now_ns)
            }
            Verdict::StoreUnavailable(error) => {
                self.without_store(&rules, desk, take, &error, now_ns)
            }
        }
    }

    /// Takes the result of a look that the store was asked about.
    pub(crate) fn finish_look(
        self,
        desk: &mut Desk,
        take: &Take<'_>,
        answer: Answer,
    ) -> DecidedTake {
        let (rules, now_ns) = (answer.rules, self.now_ns());
        self.look_local(&rules, desk, &take.subject, now_ns);
        for (step, answer) in answer.cells {
            desk.plan.tell(&rules, &take.subject, step, answer, now_ns);
        }
        match answer.verdict {
            Verdict::StoreUnavailable(error) => DecidedTake::unavailable(&error.reason),
            Verdict::Passed | Verdict::Denied(..) => DecidedTake::at_once(Outcome::Admitted {
                hold: None,
                is_repeat: false,
            }),
        }
    }

    /// Stores an admitted take: its hold and its id.
    pub(crate) fn admitted(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        now_ns: u64,
        is_degraded: bool,
    ) -> DecidedTake {
        let (mut hold, mut durable) = (None, None);
        if take.hold.is_some() || take.id.is_some() {
            let mut home = LockedShard(self.state().shard(rules.home_of(&take.subject)));
            let note = self.note(rules, &desk.plan, take, &mut home, now_ns);
            hold = note.hold;
            match self.append_note(rules, desk, &mut home, note, now_ns) {
                Ok(appended) => durable = appended,
                Err(reason) => {
                    if let Some(hold) = hold {
                        home.0.holds.remove(hold.id);
                    }
                    drop(home);
                    self.queue_return(rules, desk, take, now_ns);
                    return DecidedTake::unavailable(&reason);
                }
            }
            self.need_sweep();
        }
        // A hold counts when it ends, with its true cost.
        if take.hold.is_none() {
            let mut shard = self.state().shard(rules.home_of(&take.subject));
            let costs = desk.plan.costs(rules);
            self.count_costs(rules, &take.subject, costs, &mut shard, now_ns);
            drop(shard);
            self.need_sweep();
        }
        DecidedTake {
            outcome: Outcome::Admitted {
                hold,
                is_repeat: false,
            },
            durable,
            is_degraded,
        }
    }

    /// Appends the records before the answer if a limit is `sync`, else a moment later.
    fn append_note(
        self,
        rules: &Rules,
        desk: &Desk,
        home: &mut LockedShard<'_>,
        note: Note,
        now_ns: u64,
    ) -> Result<Option<Durable>, String> {
        let durable = match desk.plan.is_sync(rules) {
            true => self.append_records(&note.records)?,
            false => None,
        };
        self.remember(home, note, durable.is_some(), now_ns);
        Ok(durable)
    }
}
