//! The end of holds, and of everything that was used.

use quota::record;
use quota::{Hold, HoldId, Prefix, Rules, Settled, Subject};

use super::desk::Desk;
use super::{Locked, Quotas, SHARDS};
use crate::durable::Durable;

/// Holds that are ended at a time when they are over.
const EXPIRED_AT_ONCE: usize = 4_096;

/// What became of a hold.
#[derive(Clone, Debug)]
pub struct Settling {
    /// Whether it was there: one that has ended, by whatever, ends no second time.
    pub was_held: bool,
    /// What must be on disk before that is told.
    pub durable: Option<Durable>,
    /// It could not be kept that it has ended: it will end again after a crash.
    pub failed: Option<String>,
}

impl Quotas<'_> {
    /// Ends a hold with what it truly cost, or cancels it. Never fails for want of credit: what is
    /// not there becomes debt.
    pub fn settle(self, desk: &mut Desk, id: HoldId, settled: Settled<'_>) -> Settling {
        let now_ns = self.now_ns();
        let rules = self.state().rules.read();
        desk.begin(&rules, now_ns);
        let home = (id.0 % u64::from(SHARDS)) as u16;
        let Some(hold) = self.state().shard(home).holds.remove(id) else {
            return Settling {
                was_held: false,
                durable: self.everything_so_far(),
                failed: None,
            };
        };
        let settling = self.end(&rules, desk, home, id, &hold, settled, now_ns);
        drop(rules);
        self.wake_waiting();
        settling
    }

    /// Ends a hold that nobody else knows of any more.
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
    ) -> Settling {
        let mut settling = Settling {
            was_held: true,
            durable: None,
            failed: None,
        };
        // It was a subject when the hold was made.
        let Ok(subject) = Subject::parse(&hold.subject) else {
            return settling;
        };
        rules.plan_settle(&mut desk.plan, &subject, hold, settled);
        self.owe_settled(rules, desk, &subject, hold, now_ns);
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
                    match self.keep_ended(rules, desk, &subject, &ended) {
                        Ok(durable) => settling.durable = durable,
                        Err(reason) => settling.failed = Some(reason),
                    }
                    if settling.durable.is_none() && self.is_kept() {
                        let place = desk.plan.tables().binary_search(&home);
                        let home: Option<&mut Locked<'_>> =
                            place.ok().and_then(|place| locked.get_mut(place));
                        if let Some(home) = home {
                            home.0.unkept.push((record::ENDED, ended));
                        }
                    }
                    self.need_sweep();
                    return settling;
                }
            }
        }
    }

    /// Ends holds that are over. True as long as there are any holds.
    pub(super) fn expire_holds(self) -> bool {
        let now_ns = self.now_ns();
        let mut desk = Desk::new();
        let rules = self.state().rules.read();
        let mut is_any = false;
        let mut ended = 0;
        for home in 0..SHARDS {
            loop {
                let mut shard = self.state().shard(home);
                let expired = match ended < EXPIRED_AT_ONCE {
                    true => shard.holds.expire(now_ns),
                    false => None,
                };
                is_any |= !shard.holds.is_empty();
                drop(shard);
                let Some((id, hold)) = expired else { break };
                self.end(&rules, &mut desk, home, id, &hold, Settled::Expired, now_ns);
                ended += 1;
            }
        }
        drop(rules);
        if ended > 0 {
            self.wake_waiting();
        }
        is_any
    }

    /// Makes everything that bounds the subject itself as if it had taken nothing: the buckets of its
    /// agent and of its run, not those that it shares with others. What it holds it goes on to hold.
    pub(super) fn reset_cells(self, rules: &Rules, desk: &mut Desk, subject: &Subject<'_>) {
        let now_ns = self.now_ns();
        rules.plan_look(&mut desk.plan, subject);
        desk.plan
            .retain(rules, |limit| limit.pattern.tier() == quota::Tier::Agent);
        let mut locked = self.lock(&desk.plan);
        quota::reset(rules, &mut desk.plan, subject, &mut locked, now_ns);
        self.need_sweep();
    }

    /// The cell of one limit, and nothing else.
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
