//! A limiter with a few tables, used as by a shell, and constructors of limits.

use quota::{
    Bucket, Cost, Decision, Durability, Every, Factor, Hold, Kind, Limit, LimitState, Mode, Plan,
    Policies, Rules, Seed, Settled, Subject, Table, Unit, Unreachable, decide, look, reset, settle,
};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const TABLES: u16 = 4;

pub(crate) fn limit(name: &str, pattern: &str, unit: Unit, kind: Kind) -> Limit {
    Limit {
        name: name.into(),
        pattern: pattern.parse_pattern(),
        unit,
        kind,
        mode: Mode::Enforce,
        durability: Durability::Async,
        factor: Factor::ONE,
        weight: 1,
        warn: Vec::new(),
        on_unreachable: Unreachable::Degrade,
    }
}

trait ParsePattern {
    fn parse_pattern(&self) -> quota::Pattern;
}

impl ParsePattern for str {
    fn parse_pattern(&self) -> quota::Pattern {
        quota::Pattern::parse(self).unwrap()
    }
}

pub(crate) fn bucket(capacity: u64, amount: u64, period_ns: u64) -> Kind {
    Kind::Bucket(Bucket {
        capacity,
        amount,
        period_ns,
    })
}

pub(crate) fn budget(amount: u64, every: Every) -> Kind {
    Kind::Budget {
        amount,
        every,
        zone: quota::Zone::UTC,
    }
}

pub(crate) struct World {
    pub(crate) rules: Rules,
    pub(crate) tables: Vec<Table>,
    pub(crate) plan: Plan,
}

impl World {
    pub(crate) fn new(limits: Vec<Limit>) -> Self {
        Self::bounded(limits, 1_000_000)
    }

    pub(crate) fn bounded(limits: Vec<Limit>, cells_max: usize) -> Self {
        let seed = Seed(7);
        let policies = Policies::default().next(limits).unwrap();
        Self {
            rules: Rules::new(seed, TABLES).with_policies(policies, 0),
            tables: (0..TABLES).map(|_| Table::new(seed, cells_max)).collect(),
            plan: Plan::default(),
        }
    }

    pub(crate) fn take(&mut self, subject: &str, costs: &[Cost], now_ns: u64) -> Decision {
        let subject = Subject::parse(subject).unwrap();
        if let Err(refused) = self.rules.plan(&mut self.plan, &subject, costs) {
            return Decision::Refused(refused);
        }
        loop {
            let mut locked = locked(&mut self.tables, &self.plan);
            let decided = decide(&self.rules, &mut self.plan, &subject, &mut locked, now_ns);
            match decided {
                Decision::NoRoom(step) => self.plan.overflow(&self.rules, step),
                decided => return decided,
            }
        }
    }

    /// Returns the number of takes of one request until one is denied.
    pub(crate) fn drain(&mut self, subject: &str, now_ns: u64) -> u64 {
        (0..)
            .find(|_| self.take(subject, &[(Unit::REQUESTS, 1)], now_ns) != Decision::Admitted)
            .unwrap()
    }

    pub(crate) fn hold(&mut self, subject: &str, costs: &[Cost], now_ns: u64) -> Option<Hold> {
        let is_admitted = self.take(subject, costs, now_ns) == Decision::Admitted;
        is_admitted.then(|| Hold {
            subject: subject.into(),
            principal: "".into(),
            charges: self.plan.charges(&self.rules),
            deadline_ns: now_ns + 90 * SECOND,
        })
    }

    pub(crate) fn settle(&mut self, hold: &Hold, settled: Settled<'_>, now_ns: u64) {
        let subject = Subject::parse(&hold.subject).unwrap();
        self.rules
            .plan_settle(&mut self.plan, &subject, hold, settled);
        loop {
            let mut locked = locked(&mut self.tables, &self.plan);
            let settled = settle(
                &self.rules,
                &mut self.plan,
                &subject,
                hold,
                &mut locked,
                now_ns,
            );
            match settled {
                Err(step) => self.plan.overflow(&self.rules, step),
                Ok(()) => return,
            }
        }
    }

    /// Resets every cell of a subject.
    pub(crate) fn reset(&mut self, subject: &str, now_ns: u64) {
        let subject = Subject::parse(subject).unwrap();
        self.rules.plan_look(&mut self.plan, &subject);
        let mut locked = locked(&mut self.tables, &self.plan);
        reset(&self.rules, &mut self.plan, &subject, &mut locked, now_ns);
    }

    /// Returns the balance and the capacity of every limit of a subject.
    pub(crate) fn peek(&mut self, subject: &str, now_ns: u64) -> Vec<(i128, u64)> {
        let subject = Subject::parse(subject).unwrap();
        self.rules.plan_look(&mut self.plan, &subject);
        let mut locked = locked(&mut self.tables, &self.plan);
        look(&self.rules, &mut self.plan, &subject, &mut locked, now_ns);
        let states = self.plan.limit_states(&self.rules, now_ns);
        states
            .map(|LimitState { have, capacity, .. }| (have, capacity))
            .collect()
    }

    /// Switches to other rules.
    pub(crate) fn follow(&mut self, rules: Rules, now_ns: u64) {
        for table in &mut self.tables {
            table.follow(&self.rules, &rules, now_ns);
        }
        self.rules = rules;
    }

    pub(crate) fn cells(&self) -> usize {
        self.tables.iter().map(Table::len).sum()
    }

    /// Returns the state of every cell.
    pub(crate) fn state(&self) -> Vec<String> {
        let mut cells = Vec::new();
        for table in &self.tables {
            table.walk(0, usize::MAX, |key, cell| {
                cells.push(format!("{key:?} {cell:?}"))
            });
        }
        cells.sort();
        cells
    }
}

/// Returns the tables that a plan names, in its order.
pub(crate) fn locked<'a>(tables: &'a mut [Table], plan: &Plan) -> Vec<&'a mut Table> {
    let named = tables.iter_mut().enumerate();
    let named = named.filter(|(number, _)| plan.tables().contains(&(*number as u16)));
    named.map(|(_, table)| table).collect()
}
