//! Sums of the costs of a shard's takes since usage was last collected.

use hashbrown::HashTable;
use quota::LimitId;

/// The sum of some takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spend {
    pub(crate) amount: u64,
    pub(crate) takes: u64,
}

/// Usage of a limit by a subject on a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Days since 1970-01-01 UTC.
    pub(crate) day: u32,
    pub(crate) limit: LimitId,
    /// Empty for subjects that have no row of their own.
    pub(crate) subject: Box<str>,
    pub(crate) spend: Spend,
}

/// The sums of a shard.
pub(crate) struct Spends {
    day: u32,
    agents: HashTable<AgentSpends>,
    agents_max: usize,
    /// Sums of days before `day`.
    closed: Vec<Spent>,
    is_used: bool,
}

/// The sums of one agent, by limit. Entries are reused, so that an agent that takes all the time
/// costs no allocation.
struct AgentSpends {
    hash: u64,
    name: Box<str>,
    by_limit: Vec<(LimitId, Spend)>,
}

impl Spend {
    pub(crate) fn add(&mut self, other: Self) {
        self.amount = self.amount.saturating_add(other.amount);
        self.takes = self.takes.saturating_add(other.takes);
    }
}

impl AgentSpends {
    fn new(hash: u64, name: &str) -> Self {
        Self {
            hash,
            name: name.into(),
            by_limit: Vec::new(),
        }
    }

    fn add(&mut self, costs: impl Iterator<Item = (LimitId, u64)>) {
        for (limit, amount) in costs {
            let spend = Spend { amount, takes: 1 };
            match self.by_limit.iter_mut().find(|(known, _)| *known == limit) {
                Some((_, sum)) => sum.add(spend),
                None => self.by_limit.push((limit, spend)),
            }
        }
    }
}

impl Spends {
    /// Creates sums of at most `agents_max` agents; those of further agents are added up.
    pub(crate) fn new(agents_max: usize) -> Self {
        Self {
            day: 0,
            agents: HashTable::new(),
            agents_max,
            closed: Vec::new(),
            is_used: false,
        }
    }

    /// Adds the cost of one take, by limit. `hash` is that of the name.
    pub(crate) fn add(
        &mut self,
        day: u32,
        hash: u64,
        name: &str,
        costs: impl Iterator<Item = (LimitId, u64)>,
    ) {
        let mut costs = costs.peekable();
        if costs.peek().is_none() {
            return;
        }
        if self.day != day {
            self.close_day();
            self.day = day;
        }
        self.is_used = true;
        if let Some(agent) = self.agents.find_mut(hash, |agent| *agent.name == *name) {
            return agent.add(costs);
        }
        let (hash, name) = match self.agents.len() < self.agents_max {
            true => (hash, name),
            false => (0, ""),
        };
        let agent = self
            .agents
            .entry(hash, |agent| *agent.name == *name, |agent| agent.hash);
        let agent = agent.or_insert_with(|| AgentSpends::new(hash, name));
        agent.into_mut().add(costs);
    }

    /// Appends all sums to `spent`, and begins again at 0. Agents that have taken nothing since the
    /// last time are removed.
    pub(crate) fn collect(&mut self, spent: &mut Vec<Spent>) {
        if !std::mem::take(&mut self.is_used) {
            self.agents.clear();
            return;
        }
        self.close_day();
        spent.append(&mut self.closed);
    }

    fn close_day(&mut self) {
        let (day, closed) = (self.day, &mut self.closed);
        self.agents.retain(|agent| {
            let mut is_used = false;
            for (limit, spend) in &mut agent.by_limit {
                let spend = std::mem::take(spend);
                if spend.takes > 0 {
                    is_used = true;
                    closed.push(Spent {
                        day,
                        limit: *limit,
                        subject: agent.name.clone(),
                        spend,
                    });
                }
            }
            is_used
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(spends: &mut Spends) -> Vec<(u32, u32, String, u64, u64)> {
        let mut spent = Vec::new();
        spends.collect(&mut spent);
        let mut rows: Vec<_> = spent
            .into_iter()
            .map(|it| {
                let Spend { amount, takes } = it.spend;
                (it.day, it.limit.0, it.subject.into(), amount, takes)
            })
            .collect();
        rows.sort();
        rows
    }

    fn add(spends: &mut Spends, day: u32, name: &str, costs: &[(u32, u64)]) {
        let costs = costs
            .iter()
            .map(|(limit, amount)| (LimitId(*limit), *amount));
        spends.add(day, model::fnv1a_64(name.bytes()), name, costs);
    }

    #[test]
    fn spends_are_summed_by_day_limit_and_agent() {
        let mut spends = Spends::new(10);
        add(&mut spends, 7, "a", &[(1, 5), (2, 1)]);
        add(&mut spends, 7, "a", &[(1, 6)]);
        add(&mut spends, 7, "b", &[]);
        add(&mut spends, 8, "a", &[(1, 3)]);
        let row = |day, limit, amount, takes| (day, limit, "a".to_owned(), amount, takes);
        let expected = [row(7, 1, 11, 2), row(7, 2, 1, 1), row(8, 1, 3, 1)];
        assert_eq!(collected(&mut spends), expected);
        assert_eq!(collected(&mut spends), []);
    }

    #[test]
    fn agents_beyond_the_maximum_are_added_up() {
        let mut spends = Spends::new(2);
        for name in ["a", "b", "c", "d", "a"] {
            add(&mut spends, 7, name, &[(1, 5)]);
        }
        let row = |name: &str, amount, takes| (7, 1, name.to_owned(), amount, takes);
        let expected = [row("", 10, 2), row("a", 10, 2), row("b", 5, 1)];
        assert_eq!(collected(&mut spends), expected);
        // An agent without takes makes room.
        add(&mut spends, 7, "a", &[(1, 1)]);
        assert_eq!(collected(&mut spends), [row("a", 1, 1)]);
        add(&mut spends, 7, "c", &[(1, 1)]);
        assert_eq!(collected(&mut spends), [row("c", 1, 1)]);
    }
}
