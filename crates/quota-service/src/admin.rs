//! Administrative changes to quotas at run time, each with a name and a reason, acknowledged when
//! durable.
//!
//! A change produces new rules from the current ones. It is appended to the journal and then
//! replaces the rules while no take is decided; if the append fails, nothing changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use platform::Durable;
use quota::record::{self, Audit, Change, PoliciesRecord};
use quota::{AdminError, Factor, Halt, Limit, Mistake, Override, Policies, Prefix, Rules, Subject};

use super::desk::Desk;
use super::events::EventKind;
use crate::quota_store::StoreUnavailable;
use crate::service::Quotas;

/// The author of a change and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By<'a> {
    /// The name of the author's token.
    pub who: &'a str,
    /// The reason in the author's words.
    pub reason: &'a str,
}

/// Maximum length of a reason, in bytes.
const REASON_SIZE_MAX: usize = 1_024;

/// A change that is in effect, and is acknowledged when durable.
#[derive(Clone, Debug)]
#[must_use = "it is not told before it is on disk"]
pub struct AppliedChange {
    /// The version of the limits after the change.
    pub version: u64,
    /// The durability that the acknowledgement waits for.
    pub durable: Option<Durable>,
    /// True if the change applies to this node only, although nodes share their buckets.
    pub is_here_alone: bool,
}

/// Quotas were not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The current version of the limits differs from the expected one.
    #[error("the limits are of version {version}")]
    Conflict {
        /// The current version.
        version: u64,
    },
    /// The limits are invalid.
    #[error("{} of the limits make no sense", .0.len())]
    Limits(Vec<Mistake>),
    /// The request is invalid.
    #[error(transparent)]
    Invalid(#[from] AdminError),
    /// The change would raise a limit at this node only, although nodes share their buckets.
    #[error(
        "{what} that gives more would stand at this node alone, and others share its buckets \
         through a store: change the limits of every node instead"
    )]
    Apart {
        /// The kind of change.
        what: &'static str,
    },
    /// The shared store is unavailable.
    #[error(transparent)]
    StoreUnavailable(#[from] StoreUnavailable),
    /// The change could not be appended to the journal.
    #[error("it could not be kept: {0}")]
    Append(#[from] journal::AppendError),
}

impl Quotas<'_> {
    /// Returns the limits.
    pub fn policies(self) -> Arc<Policies> {
        self.state().rules.read().policies().clone()
    }

    /// Returns the limits and all other changes in effect.
    pub fn rules(self) -> Arc<Rules> {
        self.state().rules.read().clone()
    }

    /// Replaces the limits, if the current ones have the expected version.
    pub fn set_policies(
        self,
        limits: Vec<Limit>,
        if_version: Option<u64>,
        by: By<'_>,
    ) -> Result<AppliedChange, ChangeError> {
        check(by)?;
        let current = self.policies();
        let version = current.version();
        if if_version.is_some_and(|expected| expected != version) {
            return Err(ChangeError::Conflict { version });
        }
        let policies = current.next(limits).map_err(ChangeError::Limits)?;
        self.put_policies(policies, by)
    }

    pub(super) fn put_policies(
        self,
        policies: Policies,
        by: By<'_>,
    ) -> Result<AppliedChange, ChangeError> {
        let state = self.state();
        let _one_at_a_time = state.changing.lock();
        let usage = state.usage.lock();
        let mut current = state.rules.write();
        let now_ns = self.now_ns();
        let version = current.policies().version();
        if policies.version() != version + 1 {
            return Err(ChangeError::Conflict { version });
        }
        let record = PoliciesRecord {
            policies: policies.clone(),
            since_ns: now_ns,
            digest: self.digest(),
        };
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let rules = current.with_policies(policies, now_ns);
        let mut changes = vec![(record::POLICIES, bytes.clone())];
        // The elapsed time of a limit depends on when it changed, so changes are stored with the
        // limits.
        changes.extend(rules.changes().iter().filter_map(|change| match change {
            Change::Factor { .. } => Some(encoded(change)),
            Change::Halt { .. } | Change::Override { .. } => None,
        }));
        let what = format!("policies {}", rules.policies().version());
        let durable = self.append_audited(&changes, &rules, by, what, now_ns)?;
        // Limits may be removed, or count another unit from now on.
        self.collect_usage(&usage, &current);
        drop(usage);
        for shard in &state.shards {
            shard.lock().table.follow(&current, &rules, now_ns);
        }
        *current = Arc::new(rules);
        let rules = current.clone();
        drop(current);
        state.counts.follow(rules.policies());
        self.compact_changes(&rules, &bytes);
        self.note_what_is_on();
        Ok(self.applied(EventKind::Policies, "", durable))
    }

    /// Multiplies a limit by a factor, until a time (nanoseconds since 1970-01-01 UTC) or
    /// indefinitely.
    pub fn set_factor(
        self,
        limit: &str,
        factor: Factor,
        until_ns: Option<u64>,
        by: By<'_>,
    ) -> Result<AppliedChange, ChangeError> {
        self.check_factor(limit, factor)?;
        let (numerator, denominator) = factor.parts();
        let what = format!("factor {limit} {numerator}/{denominator}");
        self.change(by, what, EventKind::Factor, limit, |rules, now_ns| {
            let rules = rules.with_factor(limit, factor, until_ns, now_ns)?;
            let change = rules.policies().find(limit).map(|index| Change::Factor {
                limit: rules.policies().limits()[index].0,
                dial: *rules.dial(index),
            });
            Ok((rules, change))
        })
    }

    /// Halts a prefix: its takes are no longer admitted.
    pub fn halt(self, prefix: Prefix<'_>, by: By<'_>) -> Result<AppliedChange, ChangeError> {
        let name = prefix.to_string();
        let what = format!("halt {name}");
        self.change(by, what, EventKind::Halted, &name, |rules, now_ns| {
            let halt = Halt {
                since_ns: now_ns,
                by: by.who.into(),
                reason: by.reason.into(),
            };
            let change = Change::Halt {
                prefix: name.clone().into(),
                halt: Some(halt.clone()),
            };
            Ok((rules.with_halt(prefix, halt)?, Some(change)))
        })
    }

    /// Ends the halt of a prefix.
    pub fn resume(self, prefix: Prefix<'_>, by: By<'_>) -> Result<AppliedChange, ChangeError> {
        let name = prefix.to_string();
        let what = format!("resume {name}");
        self.change(by, what, EventKind::Resumed, &name, |rules, _| {
            let change = Change::Halt {
                prefix: name.clone().into(),
                halt: None,
            };
            Ok((rules.without_halt(prefix)?, Some(change)))
        })
    }

    /// Overrides the capacity or refill of one bucket for a time; a grant adds credit once, now. If
    /// the bucket is in a shared store, call [`grant_in_store`](Self::grant_in_store) first.
    pub fn set_override(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        change: Override,
    ) -> Result<AppliedChange, ChangeError> {
        let by = By {
            who: &change.by,
            reason: &change.reason,
        };
        let what = format!("override {limit} {prefix}");
        let name = prefix.to_string();
        if self.is_grant(&change) {
            // A grant is applied already, and leaves no override in effect.
            let given = self.change(by, what, EventKind::Override, &name, |rules, _| {
                Ok(((**rules).clone(), None))
            })?;
            return Ok(AppliedChange {
                is_here_alone: false,
                ..given
            });
        }
        self.check_override(limit, &change)?;
        self.change(by, what, EventKind::Override, &name, |rules, now_ns| {
            let rules = rules.with_override(limit, prefix, change.clone(), now_ns)?;
            let record = override_change(&rules, limit, prefix, Some(change.clone()))?;
            Ok((rules, Some(record)))
        })
    }

    /// Removes the override of one bucket.
    pub fn clear_override(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        by: By<'_>,
    ) -> Result<AppliedChange, ChangeError> {
        let what = format!("override-cleared {limit} {prefix}");
        let name = prefix.to_string();
        self.change(by, what, EventKind::OverrideEnded, &name, |rules, _| {
            let rules = rules.without_override(limit, prefix)?;
            let record = override_change(&rules, limit, prefix, None)?;
            Ok((rules, Some(record)))
        })
    }

    /// Resets the subject's own buckets to unused. If they are in a shared store, call
    /// [`reset_in_store`](Self::reset_in_store) first.
    pub fn reset(self, subject: &Subject<'_>, by: By<'_>) -> Result<AppliedChange, ChangeError> {
        let name = subject.to_string();
        let what = format!("reset {name}");
        let applied = self.change(by, what, EventKind::Reset, &name, |rules, _| {
            Ok(((**rules).clone(), None))
        })?;
        let rules = self.rules();
        self.reset_cells(&rules, &mut Desk::new(), subject);
        self.wake_waiting();
        Ok(applied)
    }

    /// Resets one bucket of any tier to unused.
    pub fn reset_bucket(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        by: By<'_>,
    ) -> Result<AppliedChange, ChangeError> {
        let what = format!("reset {limit} {prefix}");
        let name = prefix.to_string();
        let applied = self.change(by, what, EventKind::Reset, &name, |rules, _| {
            rules.key(limit, prefix)?;
            Ok(((**rules).clone(), None))
        })?;
        self.reset_cell(&self.rules(), limit, prefix)?;
        self.wake_waiting();
        Ok(applied)
    }

    fn change(
        self,
        by: By<'_>,
        what: String,
        event: EventKind,
        about: &str,
        make: impl FnOnce(&Arc<Rules>, u64) -> Result<(Rules, Option<Change>), AdminError>,
    ) -> Result<AppliedChange, ChangeError> {
        check(by)?;
        let state = self.state();
        let _one_at_a_time = state.changing.lock();
        let mut current = state.rules.write();
        let now_ns = self.now_ns();
        let (lasting, ended) = current.without_ended(now_ns);
        let (rules, change) = make(&Arc::new(lasting), now_ns)?;
        let ended = ended.into_iter().map(|(limit, prefix)| Change::Override {
            limit,
            prefix,
            change: None,
        });
        // If another override follows at once, the bucket moves from one to the other.
        let is_other = |ended: &Change| match (ended, &change) {
            (
                Change::Override { limit, prefix, .. },
                Some(Change::Override {
                    limit: to,
                    prefix: at,
                    ..
                }),
            ) => (limit, prefix) != (to, at),
            _ => true,
        };
        let mut changes: Vec<Change> = ended.filter(is_other).collect();
        changes.extend(change);
        let records: Vec<_> = changes.iter().map(encoded).collect();
        let durable = self.append_audited(&records, &rules, by, what, now_ns)?;
        for change in &changes {
            self.follow_override(&current, &rules, change, now_ns);
        }
        *current = Arc::new(rules);
        let rules = current.clone();
        drop(current);
        self.compact_with(&rules, now_ns);
        self.note_what_is_on();
        Ok(self.applied(event, about, durable))
    }

    /// Applies the current override to a bucket.
    fn follow_override(self, old: &Rules, new: &Rules, change: &Change, now_ns: u64) {
        let Change::Override {
            limit,
            prefix,
            change,
        } = change
        else {
            return;
        };
        let (name, run) = prefix.split_once('?').unwrap_or((prefix, ""));
        let key = quota::Key {
            limit: *limit,
            prefix: Prefix { name, run },
        };
        let granted = change.as_ref().map_or(0, |change| change.grant);
        let mut shard = self.state().shard(new.table_of_key(key));
        shard.table.follow_override(old, new, key, granted, now_ns);
    }

    fn append_audited(
        self,
        changes: &[(u8, Vec<u8>)],
        rules: &Rules,
        by: By<'_>,
        what: String,
        now_ns: u64,
    ) -> Result<Option<Durable>, ChangeError> {
        let audit = Audit {
            at_ns: now_ns,
            version: rules.policies().version(),
            by: by.who.into(),
            reason: by.reason.into(),
            what: what.into(),
        };
        Ok(self.append_change(changes, &audit)?)
    }

    fn compact_with(self, rules: &Rules, now_ns: u64) {
        let record = PoliciesRecord {
            policies: (**rules.policies()).clone(),
            since_ns: now_ns,
            digest: self.digest(),
        };
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        self.compact_changes(rules, &bytes);
    }

    fn applied(self, event: EventKind, about: &str, durable: Option<Durable>) -> AppliedChange {
        let is_here_alone = event != EventKind::Reset && self.state().shared.is_some();
        self.tell(about, || event);
        self.wake_waiting();
        self.need_sweep();
        AppliedChange {
            version: self.policies().version(),
            durable,
            is_here_alone,
        }
    }

    /// Updates the flags that listeners read before anything else.
    pub(super) fn note_what_is_on(self) {
        let state = self.state();
        let rules = state.rules.read();
        let is_counted = super::admission::COUNTED
            .iter()
            .any(|unit| rules.policies().counts(*unit));
        state.is_on.store(!rules.is_empty(), Ordering::Relaxed);
        let is_at_doors = is_counted || !rules.halts().is_empty();
        state.is_at_doors.store(is_at_doors, Ordering::Relaxed);
    }
}

fn check(by: By<'_>) -> Result<(), AdminError> {
    match by.reason.len() <= REASON_SIZE_MAX && by.who.len() <= REASON_SIZE_MAX {
        true => Ok(()),
        false => Err(AdminError::Range("a reason has at most 1024 bytes")),
    }
}

fn encoded(change: &Change) -> (u8, Vec<u8>) {
    let mut bytes = Vec::new();
    change.encode(&mut bytes);
    (change.tag(), bytes)
}

fn override_change(
    rules: &Rules,
    limit: &str,
    prefix: Prefix<'_>,
    change: Option<Override>,
) -> Result<Change, AdminError> {
    let (key, _) = rules.key(limit, prefix)?;
    let prefix = match prefix.run {
        "" => prefix.name.into(),
        run => format!("{}?{run}", prefix.name).into(),
    };
    Ok(Change::Override {
        limit: key.limit,
        prefix,
        change,
    })
}
