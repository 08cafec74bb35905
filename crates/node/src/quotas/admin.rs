//! What people change while the node runs: by name, with a reason, and not told before it is on disk.
//!
//! A change makes other rules of those that stand. It is journaled, then put in their place while
//! nothing is decided: a journal that does not take it leaves everything as it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quota::record::{self, Audit, Change, PoliciesRecord};
use quota::{AdminError, Factor, Halt, Limit, Mistake, Override, Policies, Prefix, Rules, Subject};

use super::Quotas;
use super::desk::Desk;
use super::events::EventKind;
use crate::durable::Durable;
use crate::ports::quota_store::Away;

/// Who changes something, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By<'a> {
    /// The name of a token.
    pub who: &'a str,
    /// In that one's words.
    pub reason: &'a str,
}

/// Bytes of a reason.
const REASON_SIZE_MAX: usize = 1_024;

/// A change that stands, and is told when it is on disk.
#[derive(Clone, Debug)]
#[must_use = "it is not told before it is on disk"]
pub struct Applied {
    /// The version of the limits.
    pub version: u64,
    /// What must be on disk before.
    pub durable: Option<Durable>,
    /// It stands at this node, of several that share their cells.
    pub is_here_alone: bool,
}

/// Why something was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The limits are of another version than was expected.
    #[error("the limits are of version {version}")]
    Conflict {
        /// Of which.
        version: u64,
    },
    /// The limits make no sense.
    #[error("{} of the limits make no sense", .0.len())]
    Limits(Vec<Mistake>),
    /// What was asked for makes no sense.
    #[error(transparent)]
    Invalid(#[from] AdminError),
    /// It would give more at this node alone, of several that share their cells.
    #[error(
        "{what} that gives more would stand at this node alone, and others share its buckets \
         through a store: change the limits of every node instead"
    )]
    Apart {
        /// What was asked for.
        what: &'static str,
    },
    /// The store that cells lie in cannot be asked.
    #[error(transparent)]
    Away(#[from] Away),
    /// It could not be kept.
    #[error("it could not be kept: {0}")]
    Append(#[from] journal::AppendError),
}

impl Quotas<'_> {
    /// The limits.
    pub fn policies(self) -> Arc<Policies> {
        self.state().rules.read().policies().clone()
    }

    /// The limits and everything that was changed beside them.
    pub fn rules(self) -> Arc<Rules> {
        self.state().rules.read().clone()
    }

    /// Other limits from now on, if those that stand are of that version.
    pub fn set_policies(
        self,
        limits: Vec<Limit>,
        if_version: Option<u64>,
        by: By<'_>,
    ) -> Result<Applied, ChangeError> {
        check(by)?;
        let standing = self.policies();
        let version = standing.version();
        if if_version.is_some_and(|expected| expected != version) {
            return Err(ChangeError::Conflict { version });
        }
        let policies = standing.next(limits).map_err(ChangeError::Limits)?;
        self.put_policies(policies, by)
    }

    pub(super) fn put_policies(
        self,
        policies: Policies,
        by: By<'_>,
    ) -> Result<Applied, ChangeError> {
        let state = self.state();
        let _one_at_a_time = state.changing.lock();
        let mut standing = state.rules.write();
        let now_ns = self.now_ns();
        let version = standing.policies().version();
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
        let rules = standing.with_policies(policies, now_ns);
        let mut changes = vec![(record::POLICIES, bytes.clone())];
        // How the time of limits passes follows from when they changed: it is kept with them.
        changes.extend(rules.changes().iter().filter_map(|change| match change {
            Change::Factor { .. } => Some(encoded(change)),
            Change::Halt { .. } | Change::Override { .. } => None,
        }));
        let what = format!("policies {}", rules.policies().version());
        let durable = self.keep(&changes, &rules, by, what, now_ns)?;
        for shard in &state.shards {
            shard.lock().table.follow(&standing, &rules, now_ns);
        }
        *standing = Arc::new(rules);
        let rules = standing.clone();
        drop(standing);
        state.counts.follow(rules.policies());
        self.compact_changes(&rules, &bytes);
        self.note_what_is_on();
        Ok(self.applied(EventKind::Policies, "", durable))
    }

    /// Multiplies what a limit gives by a factor, until a moment (nanoseconds since 1970-01-01 UTC)
    /// or for good.
    pub fn set_factor(
        self,
        limit: &str,
        factor: Factor,
        until_ns: Option<u64>,
        by: By<'_>,
    ) -> Result<Applied, ChangeError> {
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

    /// Admits nothing more for a prefix.
    pub fn halt(self, prefix: Prefix<'_>, by: By<'_>) -> Result<Applied, ChangeError> {
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

    /// Admits again what was halted.
    pub fn resume(self, prefix: Prefix<'_>, by: By<'_>) -> Result<Applied, ChangeError> {
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

    /// Another capacity or refill for one bucket, for a time; a grant is given once, now. To a bucket
    /// that lies in a store it is [given there](Self::grant_there) before.
    pub fn set_override(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        change: Override,
    ) -> Result<Applied, ChangeError> {
        let by = By {
            who: &change.by,
            reason: &change.reason,
        };
        let what = format!("override {limit} {prefix}");
        let name = prefix.to_string();
        if self.is_grant(&change) {
            // It was given already, and nothing of it stands.
            let given = self.change(by, what, EventKind::Override, &name, |rules, _| {
                Ok(((**rules).clone(), None))
            })?;
            return Ok(Applied {
                is_here_alone: false,
                ..given
            });
        }
        self.check_override(limit, &change)?;
        self.change(by, what, EventKind::Override, &name, |rules, now_ns| {
            let rules = rules.with_override(limit, prefix, change.clone(), now_ns)?;
            let kept = override_change(&rules, limit, prefix, Some(change.clone()))?;
            Ok((rules, Some(kept)))
        })
    }

    /// Has the limit stand again for one bucket.
    pub fn clear_override(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        by: By<'_>,
    ) -> Result<Applied, ChangeError> {
        let what = format!("override-cleared {limit} {prefix}");
        let name = prefix.to_string();
        self.change(by, what, EventKind::OverrideEnded, &name, |rules, _| {
            let rules = rules.without_override(limit, prefix)?;
            let kept = override_change(&rules, limit, prefix, None)?;
            Ok((rules, Some(kept)))
        })
    }

    /// Makes the buckets that are the subject's own as if it had taken nothing. Those that lie in a
    /// store are [reset there](Self::reset_there) before.
    pub fn reset(self, subject: &Subject<'_>, by: By<'_>) -> Result<Applied, ChangeError> {
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

    /// Makes one bucket, of whatever tier, as if nobody had taken from it.
    pub fn reset_bucket(
        self,
        limit: &str,
        prefix: Prefix<'_>,
        by: By<'_>,
    ) -> Result<Applied, ChangeError> {
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
    ) -> Result<Applied, ChangeError> {
        check(by)?;
        let state = self.state();
        let _one_at_a_time = state.changing.lock();
        let mut standing = state.rules.write();
        let now_ns = self.now_ns();
        let (lasting, ended) = standing.without_ended(now_ns);
        let (rules, change) = make(&Arc::new(lasting), now_ns)?;
        let ended = ended.into_iter().map(|(limit, prefix)| Change::Override {
            limit,
            prefix,
            change: None,
        });
        // Where another follows at once, the bucket goes over from one to the other.
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
        let durable = self.keep(&records, &rules, by, what, now_ns)?;
        for change in &changes {
            self.follow_override(&standing, &rules, change, now_ns);
        }
        *standing = Arc::new(rules);
        let rules = standing.clone();
        drop(standing);
        self.compact_with(&rules, now_ns);
        self.note_what_is_on();
        Ok(self.applied(event, about, durable))
    }

    /// Has a bucket follow what stands for it from now on.
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

    fn keep(
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
        Ok(self.keep_change(changes, &audit)?)
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

    fn applied(self, event: EventKind, about: &str, durable: Option<Durable>) -> Applied {
        let is_here_alone = event != EventKind::Reset && self.state().elsewhere.get().is_some();
        self.tell(about, || event);
        self.wake_waiting();
        self.need_sweep();
        Applied {
            version: self.policies().version(),
            durable,
            is_here_alone,
        }
    }

    /// What the doors ask before they ask anything else.
    pub(super) fn note_what_is_on(self) {
        let state = self.state();
        let rules = state.rules.read();
        let is_counted = super::door::COUNTED
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
