//! Settling and expiry of holds, and resets of usage.

use std::sync::atomic::Ordering;

use platform::Durable;
use quota::record;
use quota::{Hold, HoldId, Prefix, Rules, Settled, Subject};

use super::desk::Desk;
use crate::cells::{LockedShard, SHARDS};
use crate::service::Quotas;

/// Maximum number of expired holds that are ended at a time.
const EXPIRED_AT_ONCE: usize = 4_096;

/// The client that settles a hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requester<'a> {
    /// Its proven principal, if any.
    pub principal: Option<&'a str>,
    /// True if it may settle the holds of others.
    pub is_admin: bool,
}

/// The outcome of a request to settle a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleOutcome {
    /// This request ended the hold.
    Settled,
    /// The hold had ended before, or never existed.
    Ended,
    /// The hold belongs to another principal and stays open.
    Denied,
}

/// The answer to a request to settle a hold.
#[derive(Clone, Debug)]
pub struct SettleAnswer {
    /// The outcome.
    pub outcome: SettleOutcome,
    /// The durability that the answer waits for.
    pub durable: Option<Durable>,
    /// The error if the end could not be stored: after a crash the hold will be open again.
    pub failed: Option<String>,
}

impl Quotas<'_> {
    /// Ends a hold with its actual cost, or cancels it. Never fails for lack of credit: the excess
    /// becomes debt.
    pub fn settle(
        self,
        desk: &mut Desk,
        id: HoldId,
        settled: Settled<'_>,
        requester: Requester<'_>,
    ) -> SettleAnswer {
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        desk.begin(&rules, now_ns);
        let home = home_of(id);
        let mut shard = self.state().shard(home);
        let (outcome, hold) = match shard.holds.get(id) {
            None => (SettleOutcome::Ended, None),
            Some(hold) if !requester.may_settle(hold) => (SettleOutcome::Denied, None),
            Some(hold) if hold.deadline_ns <= now_ns => (SettleOutcome::Ended, None),
            Some(_) => (SettleOutcome::Settled, shard.holds.remove(id)),
        };
        drop(shard);
        let Some(hold) = hold else {
            return SettleAnswer {
                outcome,
                durable: self.everything_so_far(),
                failed: None,
            };
        };
        let settling = self.end(&rules, desk, home, id, &hold, settled, now_ns);
        drop(rules);
        self.wake_waiting();
        settling
    }

    /// Ends a hold that was already removed from the table of holds.
    #[expect(
        clippy::too_many_arguments,
        reason = "one hold, how it ends, and where"
    )]
    fn end(
        self,
        rules: &Rules,
        desk: &mut Desk,
        home: u16,
        id: HoldId,
        hold: &Hold,
        settled: Settled<'_>,
        now_ns: u64,
    ) -> SettleAnswer {
        let mut settling = SettleAnswer {
            outcome: SettleOutcome::Settled,
            durable: None,
            failed: None,
        };
        // The subject was valid when the hold was made.
        let Ok(subject) = Subject::parse(&hold.subject) else {
            return settling;
        };
        rules.plan_settle(&mut desk.plan, &subject, hold, settled);
        self.queue_settlement(rules, desk, &subject, hold, now_ns);
        loop {
            desk.plan.add_table(home);
            let mut locked = self.lock(&desk.plan);
            match quota::settle(rules, &mut desk.plan, &subject, hold, &mut locked, now_ns) {
                Err(step) => {
                    drop(locked);
                    desk.plan.overflow(rules, step);
                }
                Ok(()) => {
                    let mut ended = Vec::new();
                    record::encode_ended(id, &mut ended);
                    match self.append_hold_end(rules, desk, &subject, &ended) {
                        Ok(durable) => settling.durable = durable,
                        Err(reason) => settling.failed = Some(reason),
                    }
                    let place = desk.plan.tables().binary_search(&home);
                    let home: Option<&mut LockedShard<'_>> =
                        place.ok().and_then(|place| locked.get_mut(place));
                    if let Some(home) = home {
                        let costs = rules.hold_costs(&subject, hold, settled);
                        self.count_costs(rules, &subject, costs, &mut home.0, now_ns);
                        if settling.durable.is_none() && self.is_persistent() {
                            home.0.unwritten.push((record::ENDED, ended));
                        }
                    }
                    self.need_sweep();
                    return settling;
                }
            }
        }
    }

    /// Returns the current time after ending every expired hold, whose credit is then free.
    pub(super) fn current_ns(self) -> u64 {
        let now_ns = self.now_ns();
        while self.state().holds_due_ns.load(Ordering::Relaxed) <= now_ns && self.expire_by(now_ns)
        {
        }
        now_ns
    }

    /// Notes the deadline of a hold.
    pub(super) fn note_due(self, deadline_ns: u64) {
        let due_ns = &self.state().holds_due_ns;
        due_ns.fetch_min(deadline_ns, Ordering::Relaxed);
    }

    /// Returns the earliest possible deadline of a hold.
    pub(super) fn next_due_ns(self) -> u64 {
        self.state().holds_due_ns.load(Ordering::Relaxed)
    }

    /// Ends expired holds. Returns whether any holds are open.
    pub(super) fn expire_holds(self) -> bool {
        self.expire_by(self.now_ns());
        self.state().holds_due_ns.load(Ordering::Relaxed) < u64::MAX
    }

    /// Ends holds that expired by `now_ns`, up to a few thousand. Returns whether more may have
    /// expired.
    fn expire_by(self, now_ns: u64) -> bool {
        let due_ns = &self.state().holds_due_ns;
        // Holds created meanwhile lower this value again.
        due_ns.store(u64::MAX, Ordering::Relaxed);
        let mut desk = Desk::new();
        let rules = self.state().rules.read();
        let mut ended = 0;
        for home in 0..SHARDS {
            loop {
                let mut shard = self.state().shard(home);
                let expired = match ended < EXPIRED_AT_ONCE {
                    true => shard.holds.expire(now_ns),
                    false => None,
                };
                let Some((id, hold)) = expired else {
                    if let Some(next_ns) = shard.holds.next_ns() {
                        self.note_due(next_ns);
                    }
                    break;
                };
                drop(shard);
                self.end(&rules, &mut desk, home, id, &hold, Settled::Expired, now_ns);
                ended += 1;
            }
        }
        drop(rules);
        if ended > 0 {
            self.wake_waiting();
        }
        ended == EXPIRED_AT_ONCE
    }

    /// Resets the subject's own buckets: those of its agent and its run, not those shared with
    /// others. Its holds stay open.
    pub(super) fn reset_cells(self, rules: &Rules, desk: &mut Desk, subject: &Subject<'_>) {
        let now_ns = self.now_ns();
        rules.plan_look(&mut desk.plan, subject);
        desk.plan
            .retain(rules, |limit| limit.pattern.tier() == quota::Tier::Agent);
        let mut locked = self.lock(&desk.plan);
        quota::reset(rules, &mut desk.plan, subject, &mut locked, now_ns);
        self.need_sweep();
    }

    /// Resets the cell of one limit.
    pub(super) fn reset_cell(
        self,
        rules: &Rules,
        limit: &str,
        prefix: Prefix<'_>,
    ) -> Result<(), quota::AdminError> {
        let (key, table) = rules.key(limit, prefix)?;
        let now_ns = self.now_ns();
        self.state().shard(table).table.reset(rules, key, now_ns);
        self.need_sweep();
        Ok(())
    }
}

impl Requester<'_> {
    fn may_settle(self, hold: &Hold) -> bool {
        let is_own = self.principal == Some(&*hold.principal);
        self.is_admin || is_own || hold.principal.is_empty()
    }
}

/// Returns the shard that a hold is in.
pub(super) fn home_of(id: HoldId) -> u16 {
    (id.0 % u128::from(SHARDS)) as u16
}
