//! The end of a hold: what was reserved becomes what it truly cost.
//!
//! Settling never fails. What costs more than was reserved becomes debt if it has to; what costs less
//! is given back, unless the stretch of the calendar that it was taken from is over or the budget was
//! reset since.

use std::ops::DerefMut;

use crate::decide::{commit, look_at};
use crate::hold::{Charge, Hold};
use crate::limit::{AMOUNT_MAX, Kind};
use crate::plan::{Cost, Plan};
use crate::rules::Rules;
use crate::subject::Subject;
use crate::table::Table;

/// How a hold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled<'a> {
    /// It cost that; of units that are not named, what was reserved. Slots are free.
    Cost(&'a [Cost]),
    /// It cost nothing.
    Cancelled,
    /// Nobody said: it cost what was reserved. Slots are free.
    Expired,
}

impl Rules {
    /// Plans the end of a hold of that subject.
    pub fn plan_settle(
        &self,
        plan: &mut Plan,
        subject: &Subject<'_>,
        hold: &Hold,
        settled: Settled<'_>,
    ) {
        plan.clear();
        plan.add(self, subject, |index| {
            let reserved = charge(hold, self, index).map_or(0, |charge| charge.count);
            let truly = self.truly(index, reserved, settled);
            let change = i128::from(truly) - i128::from(reserved);
            (change != 0).then_some(change)
        });
        self.overflow_as(plan, hold);
    }

    /// Plans to use again what a hold of that subject held when it was kept: slots are not.
    pub fn plan_slots(&self, plan: &mut Plan, subject: &Subject<'_>, hold: &Hold) {
        plan.clear();
        plan.add(self, subject, |index| {
            let is_slot = matches!(self.kind(index), Kind::Slots { .. });
            let held = charge(hold, self, index).filter(|_| is_slot)?;
            Some(i128::from(held.count))
        });
        self.overflow_as(plan, hold);
    }

    /// What was taken from the cell that subjects share is given back to it.
    fn overflow_as(&self, plan: &mut Plan, hold: &Hold) {
        for number in 0..plan.steps.len() {
            let of = charge(hold, self, plan.steps[number].index);
            if of.is_some_and(|charge| charge.is_overflow) {
                plan.overflow(self, number);
            }
        }
    }

    fn truly(&self, index: usize, reserved: u64, settled: Settled<'_>) -> u64 {
        let is_slot = matches!(self.kind(index), Kind::Slots { .. });
        match settled {
            Settled::Cancelled => 0,
            Settled::Cost(_) | Settled::Expired if is_slot => 0,
            Settled::Expired => reserved,
            Settled::Cost(costs) => {
                let unit = self.limit(index).unit;
                let mut named = costs.iter().filter(|(known, _)| *known == unit).peekable();
                match named.peek() {
                    None => reserved,
                    Some(_) => {
                        let sum = named.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
                        sum.min(AMOUNT_MAX)
                    }
                }
            }
        }
    }
}

fn charge<'a>(hold: &'a Hold, rules: &Rules, index: usize) -> Option<&'a Charge> {
    let limit = rules.id(index);
    hold.charges.iter().find(|charge| charge.limit == limit)
}

/// Ends a hold as it was planned. The tables are those that the plan names, in its order. Returns the
/// step there is no room for: [`Plan::overflow`] and lock again.
pub fn settle<T: DerefMut<Target = Table>>(
    rules: &Rules,
    plan: &mut Plan,
    subject: &Subject<'_>,
    hold: &Hold,
    tables: &mut [T],
    now_ns: u64,
) -> Result<(), usize> {
    for number in 0..plan.steps.len() {
        if !look_at(rules, &mut plan.steps[number], subject, tables, now_ns) {
            return Err(number);
        }
    }
    for step in &mut plan.steps {
        let Some((cell, kind)) = &step.now else {
            continue;
        };
        let is_over = matches!(kind, Kind::Budget { .. })
            && step.count < 0
            && charge(hold, rules, step.index).is_some_and(|charge| charge.period != cell.at);
        if !is_over {
            commit(rules, step, subject, tables, now_ns);
        }
    }
    Ok(())
}

/// Makes every cell of a plan as a new one would be. Slots that are held stay held.
pub fn reset<T: DerefMut<Target = Table>>(
    rules: &Rules,
    plan: &mut Plan,
    subject: &Subject<'_>,
    tables: &mut [T],
    now_ns: u64,
) {
    for step in &mut plan.steps {
        let key = step.key(rules, subject);
        step.found = tables[step.place].get(key, step.hash);
        let Some(id) = step.found else { continue };
        let mut cell = *tables[step.place].cell(id);
        let (kind, _) = rules.bring_up(step.index, &mut cell, key.prefix, now_ns);
        cell.refill(&kind, rules.dial(step.index), now_ns);
        tables[step.place].put(step.found, key, step.hash, cell);
        step.now = Some((cell, kind));
    }
}
