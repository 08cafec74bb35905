//! Loads the stored quotas at startup.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quota::record::{self, Change, Malformed, PoliciesRecord};
use quota::{Hold, Limit, Policies, Rules, Subject};

use super::rewrite::SIZE_MIN;
use super::{OpenError, QuotaJournal};
use crate::admin;
use crate::cells::{RecentTake, SHARDS};
use crate::desk::Desk;
use crate::outcome::HoldGrant;
use crate::service::Quotas;
use crate::settle::home_of;

impl Quotas<'_> {
    /// Loads the stored quotas. The configured limits apply if the configuration changed since the
    /// last start; otherwise the last limits in effect stay.
    pub fn restore(self, limits: Vec<Limit>) -> Result<(), OpenError> {
        let mut known = None;
        if let Some(journal) = &self.state().journal {
            known = self.restore_stored(journal)?;
        }
        let digest = digest(&limits);
        if known.unwrap_or_else(digest_of_none) != digest {
            self.put_configured(limits, digest)?;
        } else if let Some(journal) = &self.state().journal {
            journal.digest.store(digest, Ordering::Relaxed);
        }
        self.note_what_is_on();
        Ok(())
    }

    /// Applies the configured limits if they changed since they were last read; returns whether
    /// they did.
    pub fn follow_configuration(self, limits: Vec<Limit>) -> Result<bool, OpenError> {
        let digest = digest(&limits);
        let is_changed = self.digest() != digest;
        if is_changed {
            self.put_configured(limits, digest)?;
        }
        Ok(is_changed)
    }

    fn put_configured(self, limits: Vec<Limit>, digest: u64) -> Result<(), OpenError> {
        let state = self.state();
        let policies = state.rules.read().policies().next(limits);
        let policies = policies.map_err(OpenError::Limits)?;
        if let Some(journal) = &state.journal {
            journal.digest.store(digest, Ordering::Relaxed);
        }
        let by = admin::By {
            who: "configuration",
            reason: "the limits of the configuration are others than last time",
        };
        // Takes meanwhile are appended after this change.
        let applied = self.put_policies(policies, by);
        applied.map(drop).map_err(|error| match error {
            admin::ChangeError::Append(error) => OpenError::Append(error),
            other => OpenError::Refused(other.to_string()),
        })
    }

    /// Loads everything; returns the digest of the configuration at the last start.
    fn restore_stored(self, journal: &QuotaJournal) -> Result<Option<u64>, OpenError> {
        let mut rules = (**self.state().rules.read()).clone();
        let mut known = None;
        let mut since_ns = 0;
        journal.each_record(journal.streams.changes, |record| {
            match record.tag {
                record::POLICIES => {
                    let read = PoliciesRecord::decode(&record.payload)?;
                    // Earlier versions wrote 0 if the configuration never had limits.
                    let digest = match read.digest {
                        0 => digest_of_none(),
                        digest => digest,
                    };
                    (known, since_ns) = (Some(digest), read.since_ns);
                    rules.restore_policies(read.policies);
                }
                tag => rules.apply(Change::decode(tag, &record.payload)?),
            }
            Ok(())
        })?;
        self.restore_state(journal, &rules, since_ns)?;
        self.restore_usage(journal)?;
        let size = journal
            .journal()
            .bytes(journal.streams.shard, journal.streams.state)
            .unwrap_or(SIZE_MIN);
        journal.written.store(size, Ordering::Relaxed);
        if let Some(digest) = known {
            journal.digest.store(digest, Ordering::Relaxed);
        }
        *self.state().rules.write() = Arc::new(rules);
        self.note_due(0);
        self.state().is_listed.store(false, Ordering::Release);
        self.need_sweep();
        Ok(known)
    }

    fn restore_state(
        self,
        journal: &QuotaJournal,
        rules: &Rules,
        since_ns: u64,
    ) -> Result<(), OpenError> {
        let (state, now_ns) = (self.state(), self.now_ns());
        journal.each_record(journal.streams.state, |record| {
            match record.tag {
                record::CELLS => {
                    for cell in record::decode_cells(&record.payload) {
                        let cell = cell?;
                        let mut shard = state.shard(rules.table_of_key(cell.key));
                        cell.restore(rules, since_ns, &mut shard.table, now_ns);
                    }
                }
                record::HOLD => {
                    let (id, hold) = record::decode_hold(&record.payload)?;
                    state.shard(home_of(id)).holds.insert(id, hold);
                }
                record::ENDED => {
                    for id in record::decode_ended(&record.payload) {
                        let id = id?;
                        state.shard(home_of(id)).holds.remove(id);
                    }
                }
                record::TAKEN => {
                    let taken = record::TakeRecord::decode(&record.payload)?;
                    self.restore_id(rules, &taken, now_ns);
                }
                record::SHORT_HOLD => {
                    let (id, hold) = record::decode_short_hold(&record.payload)?;
                    state.shard(home_of(id)).holds.insert(id, hold);
                }
                record::SHORT_ENDED => {
                    for id in record::decode_short_ended(&record.payload) {
                        let id = id?;
                        state.shard(home_of(id)).holds.remove(id);
                    }
                }
                record::SHORT_TAKEN => {
                    let taken = record::TakeRecord::decode_short(&record.payload)?;
                    self.restore_id(rules, &taken, now_ns);
                }
                _ => return Err(Malformed { what: "state" }.into()),
            }
            Ok(())
        })?;
        self.restore_slots(rules, now_ns);
        Ok(())
    }

    fn restore_id(self, rules: &Rules, taken: &record::TakeRecord<'_>, now_ns: u64) {
        let subject = taken.id.split_once('\n').map(|(subject, _)| subject);
        if let Some(Ok(subject)) = subject.map(Subject::parse) {
            let mut shard = self.state().shard(rules.home_of(&subject));
            let hold = taken
                .hold
                .map(|(id, deadline_ns)| HoldGrant { id, deadline_ns });
            let known = RecentTake {
                hold,
                cost_digest: taken.cost_digest,
            };
            shard.recent.insert(taken.id, known, taken.until_ns, now_ns);
        }
    }

    /// Recomputes the slots in use from the open holds.
    fn restore_slots(self, rules: &Rules, now_ns: u64) {
        let mut desk = Desk::new();
        for home in 0..SHARDS {
            let shard = self.state().shard(home);
            let holds: Vec<Hold> = shard.holds.iter().map(|(_, hold)| hold.clone()).collect();
            drop(shard);
            for hold in holds {
                let Ok(subject) = Subject::parse(&hold.subject) else {
                    continue;
                };
                rules.plan_slots(&mut desk.plan, &subject, &hold);
                self.retain_local_cells(rules, &mut desk);
                let mut locked = self.lock(&desk.plan);
                // A cell for which there is no room is not limited until its hold ends.
                let _ = quota::settle(rules, &mut desk.plan, &subject, &hold, &mut locked, now_ns);
            }
        }
    }
}

/// Hash of a configuration without limits.
fn digest_of_none() -> u64 {
    digest(&[])
}

/// Hash of the limits as they are stored: equal for equal configurations.
fn digest(limits: &[Limit]) -> u64 {
    let mut bytes = Vec::new();
    if let Ok(policies) = Policies::default().next(limits.to_vec()) {
        let record = PoliciesRecord {
            policies,
            since_ns: 0,
            digest: 0,
        };
        record.encode(&mut bytes);
    }
    model::fnv1a_64(bytes)
}
