//! The plan of a take: the cells that it needs, the amount of each, and their tables.
//!
//! A plan is reused for the next take, to avoid allocation. It is made from the rules alone; cells
//! are looked up once the tables are locked.

use crate::cell::{Cell, When};
use crate::decide::Refused;
use crate::key::{Key, Seed};
use crate::limit::{AMOUNT_MAX, Durability, Kind, Limit};
use crate::rules::Rules;
use crate::subject::{Prefix, Subject, Tier};
use crate::table::CellId;
use crate::unit::Unit;

/// An amount of a unit.
pub type Cost = (Unit, u64);

/// The plan of a take; see the module's documentation.
#[derive(Debug, Default)]
pub struct Plan {
    pub(crate) steps: Vec<Step>,
    /// The tables to lock, ascending, each once.
    tables: Vec<u16>,
}

/// A step of a plan: one cell.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The index of the limit in the rules.
    pub(crate) index: usize,
    /// The amount to take; negative to give back.
    pub(crate) count: i128,
    pub(crate) tier: Tier,
    pub(crate) is_per_run: bool,
    pub(crate) is_overflow: bool,
    pub(crate) hash: u64,
    pub(crate) table: u16,
    /// The index of `table` among the tables that the plan names.
    pub(crate) place: usize,
    pub(crate) found: Option<CellId>,
    /// The cell and its kind, once it was read.
    pub(crate) now: Option<(Cell, Kind)>,
    /// The last take in the limit's own time, if the cell is a bucket that exists.
    pub(crate) touched: Option<u64>,
    /// When the take would pass, for a limit in shadow mode that lacks credit and is not debited.
    pub(crate) shadowed: Option<When>,
    /// The warning threshold that was crossed, in thousandths.
    pub(crate) warned: Option<u16>,
}

impl Plan {
    /// Returns the steps, one per cell.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the keys of the cells, in the order of the steps.
    pub fn keys<'a>(&self, rules: &Rules, subject: &Subject<'a>) -> impl Iterator<Item = Key<'a>> {
        self.steps.iter().map(|step| step.key(rules, subject))
    }

    /// Returns the tables to lock, in this order.
    pub fn tables(&self) -> &[u16] {
        &self.tables
    }

    /// Adds a table to lock, for other state that is stored with it.
    pub fn add_table(&mut self, table: u16) {
        if let Err(place) = self.tables.binary_search(&table) {
            self.tables.insert(place, table);
            self.place();
        }
    }

    /// Returns the indices in the rules of the limits that an admitted take was taken from.
    pub fn taken(&self) -> impl Iterator<Item = usize> + '_ {
        let taken = self.steps.iter().filter(|step| step.shadowed.is_none());
        taken.map(|step| step.index)
    }

    /// Removes the steps of all limits for which `keep` returns false.
    pub fn retain(&mut self, rules: &Rules, keep: impl Fn(&Limit) -> bool) {
        self.steps.retain(|step| keep(rules.limit(step.index)));
        self.line_up();
    }

    /// Returns whether the take must be on disk before it is answered.
    pub fn is_sync(&self, rules: &Rules) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| rules.limit(step.index).durability == Durability::Sync)
    }

    /// Replaces the cell of a step by the limit's shared overflow cell, for a table without room.
    /// This changes the tables to lock.
    pub fn overflow(&mut self, rules: &Rules, step: usize) {
        let limit = rules.id(self.steps[step].index);
        let key = Key::overflow(limit);
        let hash = Seed::of_limit(rules.seed.hash(key.prefix), limit);
        let step = &mut self.steps[step];
        (step.is_overflow, step.hash) = (true, hash);
        step.table = rules.overflow_table(limit);
        self.line_up();
    }

    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.tables.clear();
    }

    /// Computes the tables to lock and each step's index among them.
    pub(crate) fn line_up(&mut self) {
        self.tables.clear();
        if let [step] = &mut *self.steps {
            step.place = 0;
            return self.tables.push(step.table);
        }
        self.tables.extend(self.steps.iter().map(|step| step.table));
        self.tables.sort_unstable();
        self.tables.dedup();
        self.place();
    }

    fn place(&mut self) {
        for step in &mut self.steps {
            step.place = self.tables.partition_point(|table| *table < step.table);
        }
    }

    /// Adds a step for every limit that covers the subject and for which `count` returns an amount.
    pub(crate) fn add(
        &mut self,
        rules: &Rules,
        subject: &Subject<'_>,
        count: impl Fn(usize) -> Option<i128>,
    ) {
        let mut last: Option<(Tier, bool, u64)> = None;
        for index in rules.policies.covering(subject) {
            let Some(count) = count(index) else { continue };
            let pattern = &rules.limit(index).pattern;
            let (tier, is_per_run) = (pattern.tier(), pattern.is_per_run());
            let hash = match last {
                Some((known, runs, hash)) if (known, runs) == (tier, is_per_run) => hash,
                _ => rules.seed.hash(prefix(subject, tier, is_per_run)),
            };
            last = Some((tier, is_per_run, hash));
            self.steps.push(Step {
                index,
                count,
                tier,
                is_per_run,
                is_overflow: false,
                hash: Seed::of_limit(hash, rules.id(index)),
                table: rules.table_of(hash),
                place: 0,
                found: None,
                now: None,
                touched: None,
                shadowed: None,
                warned: None,
            });
        }
        self.line_up();
    }
}

impl Step {
    /// Returns the key of the step's cell.
    pub(crate) fn key<'a>(&self, rules: &Rules, subject: &Subject<'a>) -> Key<'a> {
        let limit = rules.id(self.index);
        match self.is_overflow {
            true => Key::overflow(limit),
            false => Key {
                limit,
                prefix: prefix(subject, self.tier, self.is_per_run),
            },
        }
    }
}

fn prefix<'a>(subject: &Subject<'a>, tier: Tier, is_per_run: bool) -> Prefix<'a> {
    Prefix {
        name: subject.prefix(tier),
        run: if is_per_run { subject.run() } else { "" },
    }
}

impl Rules {
    /// Plans a take.
    pub fn plan(
        &self,
        plan: &mut Plan,
        subject: &Subject<'_>,
        costs: &[Cost],
    ) -> Result<(), Refused> {
        plan.clear();
        if costs.iter().all(|(_, count)| *count == 0) {
            return Err(Refused::Nothing);
        }
        for (unit, count) in costs {
            if *count > AMOUNT_MAX {
                return Err(Refused::TooMuch { unit: *unit });
            }
            if !self.policies.counts(*unit) && !unit.is_known() {
                return Err(Refused::UnknownUnit { unit: *unit });
            }
        }
        plan.add(self, subject, |index| {
            let unit = self.limit(index).unit;
            let counts = costs
                .iter()
                .filter(|(known, count)| *known == unit && *count > 0);
            let count: i128 = counts.map(|(_, count)| i128::from(*count)).sum();
            (count > 0).then_some(count)
        });
        Ok(())
    }

    /// Plans to read every limit that covers the subject.
    pub fn plan_look(&self, plan: &mut Plan, subject: &Subject<'_>) {
        plan.clear();
        plan.add(self, subject, |_| Some(0));
    }
}
