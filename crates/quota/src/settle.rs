//! Settlement of holds: the reserved amount is replaced by the true cost.
//!
//! Settling never fails. A cost above the reserved amount becomes debt if necessary. A cost below
//! it is refunded, unless the calendar period of the take is over or the budget was reset since.

use std::ops::DerefMut;

use crate::decide::{commit, look_at};
use crate::hold::{Charge, Hold};
use crate::limit::{AMOUNT_MAX, Kind, LimitId};
use crate::plan::{Cost, Plan};
use crate::rules::Rules;
use crate::subject::Subject;
use crate::table::Table;

/// The outcome of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled<'a> {
    /// The true cost. Units that are not named cost the reserved amount. Slots are released.
    Cost(&'a [Cost]),
    /// The work was cancelled: everything is refunded.
    Cancelled,
    /// The deadline passed without a settlement: the reserved amount is charged. Slots are
    /// released.
    Expired,
}

impl Rules {
    /// Plans the settlement of a hold of that subject.
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
            let truly = self.true_cost(index, reserved, settled);
            let change = i128::from(truly) - i128::from(reserved);
            (change != 0).then_some(change)
        });
        self.use_overflow_of(plan, hold);
    }

    /// Plans to occupy again the slots of a hold that was restored from the journal: cells of slots
    /// are not journaled.
    pub fn plan_slots(&self, plan: &mut Plan, subject: &Subject<'_>, hold: &Hold) {
        plan.clear();
        plan.add(self, subject, |index| {
            let is_slot = matches!(self.kind(index), Kind::Slots { .. });
            let held = charge(hold, self, index).filter(|_| is_slot)?;
            Some(i128::from(held.count))
        });
        self.use_overflow_of(plan, hold);
    }

    /// Returns the true cost of a hold that has ended, by limit; nothing for a cancelled one. Slots are
    /// left out, since they are returned.
    pub fn hold_costs<'a>(
        &'a self,
        subject: &'a Subject<'_>,
        hold: &'a Hold,
        settled: Settled<'a>,
    ) -> impl Iterator<Item = (LimitId, u64)> + 'a {
        let limits = self.policies.covering(subject);
        limits.filter_map(move |index| {
            let reserved = charge(hold, self, index).map(|charge| charge.count);
            let amount = self.true_cost(index, reserved.unwrap_or(0), settled);
            let is_spent = settled != Settled::Cancelled
                && self.is_spent(index)
                && (reserved.is_some() || amount > 0);
            is_spent.then(|| (self.id(index), amount))
        })
    }

    /// Directs refunds of amounts from the shared overflow cell back to that cell.
    fn use_overflow_of(&self, plan: &mut Plan, hold: &Hold) {
        for number in 0..plan.steps.len() {
            let of = charge(hold, self, plan.steps[number].index);
            if of.is_some_and(|charge| charge.is_overflow) {
                plan.overflow(self, number);
            }
        }
    }

    fn true_cost(&self, index: usize, reserved: u64, settled: Settled<'_>) -> u64 {
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

/// Executes a planned settlement. `tables` are those that the plan names, in its order. If a table
/// has no room for a cell, returns its step: call [`Plan::overflow`], lock again and retry.
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

/// Resets every cell of a plan to the state of a new one. Slots that are held stay held.
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
