//! Decisions about takes: all cells are checked first, then all of them are debited or none is.

use std::ops::DerefMut;
use std::time::Duration;

use crate::cell::{Cell, When};
use crate::limit::{Kind, Limit, LimitId, Mode};
use crate::plan::{Plan, Step};
use crate::rules::Rules;
use crate::subject::Subject;
use crate::table::{CellLookup, Table};
use crate::unit::Unit;

/// The outcome of a take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Admitted: every cell was debited.
    Admitted,
    /// Denied: no cell was debited.
    Denied(Denied),
    /// A halt applies to the subject: nothing is admitted for that prefix.
    Halted {
        /// The halted prefix.
        prefix: Box<str>,
        /// The reason that was given with the halt.
        reason: Box<str>,
    },
    /// The request is invalid: no wait would help.
    Refused(Refused),
    /// The table has no room for the cell of that step: call [`Plan::overflow`], lock again and
    /// retry.
    NoRoom(usize),
}

/// Details of a denied take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The limit that admits the take last.
    pub limit: LimitId,
    /// The index of that limit in the rules.
    pub index: usize,
    /// The available amount, rounded down; negative for debt.
    pub have: i128,
    /// The requested amount.
    pub need: u64,
    /// The time at which the take would pass.
    pub when: When,
}

/// The reason why a take is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// All costs are 0.
    #[error("every cost of the take is 0")]
    Nothing,
    /// A cost is above [`AMOUNT_MAX`](crate::AMOUNT_MAX).
    #[error("the cost of `{unit}` exceeds the maximum of 1000000000000000")]
    TooMuch {
        /// The unit of that cost.
        unit: Unit,
    },
    /// No limit counts this unit.
    #[error("no limit counts `{unit}`")]
    UnknownUnit {
        /// The requested unit.
        unit: Unit,
    },
    /// The request exceeds the limit's capacity: it would never pass.
    #[error("{need} exceeds the capacity ({capacity})")]
    AboveCapacity {
        /// The limit.
        limit: LimitId,
        /// The limit's capacity.
        capacity: u64,
        /// The requested amount.
        need: u64,
    },
    /// The id of the take is empty or too long.
    #[error("the id of a take must have 1 to 255 bytes")]
    Id,
    /// The id was used before, by a take with other costs.
    #[error("the id was used before by a take with different costs")]
    IdReused,
    /// The requested hold lasts 0 seconds.
    #[error("a hold of 0s is too short (minimum 1ms)")]
    HoldTooShort,
    /// The requested hold is longer than `quota.hold_max`.
    #[error("a hold of {hold:?} is longer than quota.hold_max ({hold_max:?})")]
    HoldTooLong {
        /// The requested duration.
        hold: Duration,
        /// The value of `quota.hold_max`.
        hold_max: Duration,
    },
    /// A limit of the take counts slots, which need a hold so that they can be released.
    #[error("`{unit}` counts slots: take it with a hold")]
    HoldNeeded {
        /// The unit that the slots count.
        unit: Unit,
    },
}

/// The state of one limit for a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitState<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// The limit's id.
    pub id: LimitId,
    /// The available amount, rounded down; negative for debt.
    pub have: i128,
    /// The capacity.
    pub capacity: u64,
    /// When the cell is full again, in nanoseconds since 1970-01-01 UTC; `None` if that cannot be
    /// known.
    pub reset_ns: Option<u64>,
    /// The last take before this one, in nanoseconds since 1970-01-01 UTC; `None` for never and for
    /// limits that are no buckets.
    pub touched_ns: Option<u64>,
    /// True if the subject uses the limit's shared overflow cell, because its table had no room for
    /// an own one.
    pub is_shared: bool,
    /// When the take would have passed if the limit, which is in shadow mode and lacked credit, were
    /// enforced.
    pub shadowed: Option<When>,
}

/// A warning threshold that a take crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warned {
    /// The index of the limit in the rules.
    pub index: usize,
    /// The threshold, in thousandths of the capacity.
    pub share: u16,
}

/// Decides about a take. `tables` are the locked tables that the plan names, in the plan's order.
pub fn decide<T: DerefMut<Target = Table>>(
    rules: &Rules,
    plan: &mut Plan,
    subject: &Subject<'_>,
    tables: &mut [T],
    now_ns: u64,
) -> Decision {
    if let Some((prefix, halt)) = rules.halted(subject) {
        return Decision::Halted {
            prefix: prefix.into(),
            reason: halt.reason.clone(),
        };
    }
    let mut tightest: Option<Denied> = None;
    for (number, step) in plan.steps.iter_mut().enumerate() {
        if !look_at(rules, step, subject, tables, now_ns) {
            return Decision::NoRoom(number);
        }
        match judge(rules, step, subject, now_ns) {
            Ok(None) => {}
            Ok(Some(denied)) => {
                if tightest.is_none_or(|known| known.when < denied.when) {
                    tightest = Some(denied);
                }
            }
            Err(refused) => return Decision::Refused(refused),
        }
    }
    if let Some(denied) = tightest {
        return Decision::Denied(denied);
    }
    for step in &mut plan.steps {
        if step.shadowed.is_none() {
            commit(rules, step, subject, tables, now_ns);
        }
    }
    Decision::Admitted
}

/// Reads the cells of a plan without changing them. `tables` are those that the plan names, in its
/// order.
pub fn look<T: DerefMut<Target = Table>>(
    rules: &Rules,
    plan: &mut Plan,
    subject: &Subject<'_>,
    tables: &mut [T],
    now_ns: u64,
) {
    for step in &mut plan.steps {
        let key = step.key(rules, subject);
        step.found = tables[step.place].get(key, step.hash);
        bring_up(rules, step, subject, tables, now_ns);
    }
}

/// Finds the step's cell, if it exists, and brings it up to date. Returns false if the table has no
/// room for it.
pub(crate) fn look_at<T: DerefMut<Target = Table>>(
    rules: &Rules,
    step: &mut Step,
    subject: &Subject<'_>,
    tables: &mut [T],
    now_ns: u64,
) -> bool {
    let key = step.key(rules, subject);
    step.found = match tables[step.place].find(rules, key, step.hash, now_ns) {
        CellLookup::Cell(id) => Some(id),
        CellLookup::Room => None,
        CellLookup::Full => return false,
    };
    bring_up(rules, step, subject, tables, now_ns);
    true
}

fn bring_up<T: DerefMut<Target = Table>>(
    rules: &Rules,
    step: &mut Step,
    subject: &Subject<'_>,
    tables: &[T],
    now_ns: u64,
) {
    let key = step.key(rules, subject);
    let mut cell = match step.found {
        Some(id) => *tables[step.place].cell(id),
        None => {
            let (kind, dial) = (rules.kind(step.index), rules.dial(step.index));
            Cell::full(key.limit, kind, dial, now_ns)
        }
    };
    let at = cell.at;
    let (kind, _) = rules.bring_up(step.index, &mut cell, key.prefix, now_ns);
    let is_bucket = matches!(kind, Kind::Bucket(_));
    step.touched = step.found.filter(|_| is_bucket).map(|_| at);
    (step.now, step.shadowed, step.warned) = (Some((cell, kind)), None, None);
}

/// Checks whether a cell has the requested amount.
fn judge(
    rules: &Rules,
    step: &mut Step,
    subject: &Subject<'_>,
    now_ns: u64,
) -> Result<Option<Denied>, Refused> {
    let Some((cell, kind)) = step.now else {
        return Ok(None);
    };
    let dial = rules.dial(step.index);
    let have = cell.have(&kind, dial, now_ns);
    if have >= step.count {
        return Ok(None);
    }
    let limit = rules.limit(step.index);
    let need = step.count as u64;
    let capacity = kind.capacity();
    let is_enforced = limit.mode == Mode::Enforce;
    if is_enforced && need > capacity && capacity > 0 {
        let limit = cell.limit;
        return Err(Refused::AboveCapacity {
            limit,
            capacity,
            need,
        });
    }
    let when = ready(rules, step, subject, need, now_ns);
    if !is_enforced {
        step.shadowed = Some(when);
        return Ok(None);
    }
    Ok(Some(Denied {
        limit: cell.limit,
        index: step.index,
        have,
        need,
        when,
    }))
}

/// Returns when the step's cell has `need`; an override may end before that.
fn ready(rules: &Rules, step: &Step, subject: &Subject<'_>, need: u64, now_ns: u64) -> When {
    let Some((mut cell, kind)) = step.now else {
        return When::Never;
    };
    if need > AMOUNT_OF_ALL {
        return When::Never;
    }
    let dial = rules.dial(step.index);
    let when = cell.ready(&kind, dial, now_ns, need);
    let prefix = step.key(rules, subject).prefix;
    let (_, until_ns) = rules.bring_up(step.index, &mut cell, prefix, now_ns);
    let Some(until_ns) = until_ns else {
        return within_capacity(when, &kind, need);
    };
    match when {
        When::At(at_ns) if at_ns < until_ns && need <= kind.capacity() => when,
        When::Period(at_ns) if at_ns < until_ns => when,
        When::Release => when,
        _ => {
            let (base, _) = rules.bring_up(step.index, &mut cell, prefix, until_ns);
            within_capacity(cell.ready(&base, dial, until_ns, need), &base, need)
        }
    }
}

const AMOUNT_OF_ALL: u64 = crate::limit::AMOUNT_MAX * 16;

/// Returns `Never` if a bucket or slots would need more than their capacity.
fn within_capacity(when: When, kind: &Kind, need: u64) -> When {
    match when {
        When::At(_) if need > kind.capacity() => When::Never,
        When::Release if need > kind.capacity() => When::Never,
        when => when,
    }
}

/// Debits the step's cell and notes warning thresholds that it crosses.
pub(crate) fn commit<T: DerefMut<Target = Table>>(
    rules: &Rules,
    step: &mut Step,
    subject: &Subject<'_>,
    tables: &mut [T],
    now_ns: u64,
) {
    let Some((cell, kind)) = &mut step.now else {
        return;
    };
    cell.debit(kind, step.count);
    let limit = rules.limit(step.index);
    let share = match limit.warn.get(usize::from(cell.warned)) {
        Some(_) => cell.used_share(kind, rules.dial(step.index), now_ns),
        None => 0,
    };
    while let Some(threshold) = limit.warn.get(usize::from(cell.warned)) {
        if share < *threshold {
            break;
        }
        cell.warned += 1;
        step.warned = Some(*threshold);
    }
    let cell = *cell;
    let key = step.key(rules, subject);
    tables[step.place].put(step.found, key, step.hash, cell);
}

impl Plan {
    /// Returns the state of every limit that was read, in the order of the rules.
    pub fn limit_states<'a>(
        &'a self,
        rules: &'a Rules,
        now_ns: u64,
    ) -> impl Iterator<Item = LimitState<'a>> + 'a {
        self.steps.iter().filter_map(move |step| {
            let (cell, kind) = step.now.as_ref()?;
            let dial = rules.dial(step.index);
            Some(LimitState {
                limit: rules.limit(step.index),
                id: cell.limit,
                have: cell.have(kind, dial, now_ns),
                capacity: kind.capacity_by(dial.factor_at(now_ns)),
                reset_ns: cell.reset_ns(kind, dial, now_ns),
                touched_ns: step.touched.and_then(|own_ns| dial.clock_ns(own_ns)),
                is_shared: step.is_overflow,
                shadowed: step.shadowed,
            })
        })
    }

    /// Returns the denial for a take that must wait behind others: they wait for `ahead` of the
    /// cell of step `number`. The plan must have been read by [`look`].
    pub fn behind(&self, rules: &Rules, number: usize, ahead: u64, now_ns: u64) -> Option<Denied> {
        let step = self.steps.get(number)?;
        let (cell, kind) = step.now.as_ref()?;
        let dial = rules.dial(step.index);
        let need = u64::try_from(step.count).ok()?;
        Some(Denied {
            limit: cell.limit,
            index: step.index,
            have: cell.have(kind, dial, now_ns),
            need,
            when: cell.ready(kind, dial, now_ns, need.saturating_add(ahead)),
        })
    }

    /// Returns the warning thresholds that the take crossed.
    pub fn warned(&self) -> impl Iterator<Item = Warned> + '_ {
        self.steps.iter().filter_map(|step| {
            let share = step.warned?;
            let index = step.index;
            Some(Warned { index, share })
        })
    }

    /// Returns the unit of a limit of the plan that counts slots, if there is one.
    pub fn has_slots(&self, rules: &Rules) -> Option<Unit> {
        let slots = self
            .steps
            .iter()
            .find(|step| matches!(rules.kind(step.index), Kind::Slots { .. }));
        slots.map(|step| rules.limit(step.index).unit)
    }
}
