//! The rules of a decision, apart from the cells: limits, factors, halts and overrides.
//!
//! Rules are an immutable value. A change makes new rules; the shell installs them while no
//! decision is running, and has its tables [follow](crate::Table::follow).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admin::{AdminError, Halt, Override};
use crate::cell::Cell;
use crate::dial::{Dial, Factor};
use crate::key::{Key, Seed};
use crate::limit::{Kind, Limit, LimitId};
use crate::policies::Policies;
use crate::subject::{Prefix, Subject, Tier};

/// Maximum number of overrides, and of halts.
const CHANGES_MAX: usize = 10_000;

/// The rules of a decision; see the module's documentation.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) policies: Arc<Policies>,
    /// The kind of each limit, with its refill multiplied by the weight.
    kinds: Vec<Kind>,
    pub(crate) dials: Vec<Dial>,
    pub(crate) halts: BTreeMap<Box<str>, Halt>,
    pub(crate) overrides: BTreeMap<(LimitId, Box<str>), Override>,
    pub(crate) seed: Seed,
    tables: u16,
    /// The offset of the wall clock from the node's clock, in nanoseconds, as in every dial.
    calendar_shift_ns: i64,
}

impl Rules {
    /// Creates rules without limits, for cells in `tables` tables, a power of two.
    ///
    /// # Panics
    /// If `tables` is not a power of two.
    pub fn new(seed: Seed, tables: u16) -> Self {
        assert!(tables.is_power_of_two(), "tables are told apart by bits");
        Self {
            policies: Arc::default(),
            kinds: Vec::new(),
            dials: Vec::new(),
            halts: BTreeMap::new(),
            overrides: BTreeMap::new(),
            seed,
            tables,
            calendar_shift_ns: 0,
        }
    }

    /// Returns the limits.
    pub fn policies(&self) -> &Arc<Policies> {
        &self.policies
    }

    /// Returns whether there are no limits and no halts, so that every take is admitted.
    pub fn is_empty(&self) -> bool {
        self.policies.limits().is_empty() && self.halts.is_empty()
    }

    /// Returns the number of tables.
    pub fn table_count(&self) -> u16 {
        self.tables
    }

    /// Returns the halts, by prefix.
    pub fn halts(&self) -> &BTreeMap<Box<str>, Halt> {
        &self.halts
    }

    /// Returns the overrides, by limit and prefix.
    pub fn overrides(&self) -> &BTreeMap<(LimitId, Box<str>), Override> {
        &self.overrides
    }

    /// Returns the dial of a limit's own time.
    pub fn dial(&self, index: usize) -> &Dial {
        &self.dials[index]
    }

    /// Returns the limit with that index.
    pub fn limit(&self, index: usize) -> &Arc<Limit> {
        &self.policies.limits()[index].1
    }

    pub(crate) fn id(&self, index: usize) -> LimitId {
        self.policies.limits()[index].0
    }

    pub(crate) fn kind(&self, index: usize) -> &Kind {
        &self.kinds[index]
    }

    /// Returns the rules with other limits. A factor that was set until a moment stays in force
    /// until then.
    #[must_use]
    pub fn with_policies(&self, policies: Policies, now_ns: u64) -> Self {
        let dial = |(id, limit): &(LimitId, Arc<Limit>)| {
            let Some(old) = self.policies.index(*id) else {
                return Dial::new(limit.factor, now_ns);
            };
            let (dial, old_factor) = (self.dials[old], self.limit(old).factor);
            let then = dial.then.filter(|(until_ns, _)| now_ns < *until_ns);
            match then {
                Some((until_ns, _)) => {
                    dial.turned(now_ns, dial.factor, Some((until_ns, limit.factor)))
                }
                // A factor that was set without an end stays until the limit's own factor changes.
                None if old_factor == limit.factor => dial,
                None => dial.turned(now_ns, limit.factor, None),
            }
        };
        let dials = policies.limits().iter().map(dial).collect();
        let mut rules = self.clone();
        rules
            .overrides
            .retain(|(id, _), _| policies.index(*id).is_some());
        rules.put_policies(policies, dials);
        rules.with_calendar_shift(self.calendar_shift_ns)
    }

    /// Returns the rules for a wall clock that is `shift_ns` nanoseconds ahead of the node's clock:
    /// budgets follow the wall clock, buckets do not. Tables must
    /// [follow](crate::Table::follow_calendar).
    #[must_use]
    pub fn with_calendar_shift(&self, shift_ns: i64) -> Self {
        let mut rules = self.clone();
        rules.calendar_shift_ns = shift_ns;
        for dial in &mut rules.dials {
            dial.calendar_shift_ns = shift_ns;
        }
        rules
    }

    pub(crate) fn put_policies(&mut self, policies: Policies, dials: Vec<Dial>) {
        let kind = |(_, limit): &(LimitId, Arc<Limit>)| limit.kind.weighed(limit.weight);
        self.kinds = policies.limits().iter().map(kind).collect();
        self.policies = Arc::new(policies);
        self.dials = dials;
    }

    /// Returns the rules with a factor on a limit, until a moment or without an end.
    pub fn with_factor(
        &self,
        limit: &str,
        factor: Factor,
        until_ns: Option<u64>,
        now_ns: u64,
    ) -> Result<Self, AdminError> {
        let index = self.find(limit)?;
        let then = until_ns.map(|until_ns| (until_ns, self.limit(index).factor));
        let mut rules = self.clone();
        let dial = &mut rules.dials[index];
        *dial = match then {
            Some((until_ns, then)) if until_ns <= now_ns => dial.turned(now_ns, then, None),
            then => dial.turned(now_ns, factor, then),
        };
        Ok(rules)
    }

    /// Returns the rules with a halt for a prefix.
    pub fn with_halt(&self, prefix: Prefix<'_>, halt: Halt) -> Result<Self, AdminError> {
        let mut rules = self.clone();
        rules.halts.insert(prefix.to_string().into(), halt);
        match rules.halts.len() > CHANGES_MAX {
            true => Err(AdminError::TooMany(CHANGES_MAX)),
            false => Ok(rules),
        }
    }

    /// Returns the rules without the halt of a prefix.
    pub fn without_halt(&self, prefix: Prefix<'_>) -> Result<Self, AdminError> {
        let mut rules = self.clone();
        let prefix = prefix.to_string();
        match rules.halts.remove(&*prefix) {
            Some(_) => Ok(rules),
            None => Err(AdminError::None(prefix)),
        }
    }

    /// Returns the rules with an override for one cell.
    pub fn with_override(
        &self,
        limit: &str,
        prefix: Prefix<'_>,
        change: Override,
        now_ns: u64,
    ) -> Result<Self, AdminError> {
        let (index, key) = self.owned_key(limit, prefix)?;
        change.check(self.kinds[index])?;
        if change.until_ns <= now_ns {
            return Err(AdminError::Range(
                "the end of the override lies in the past",
            ));
        }
        let mut rules = self.clone();
        rules.overrides.insert(key, change);
        match rules.overrides.len() > CHANGES_MAX {
            true => Err(AdminError::TooMany(CHANGES_MAX)),
            false => Ok(rules),
        }
    }

    /// Returns whether an override gives no more than its limit.
    pub fn tightens(&self, limit: &str, change: &Override) -> Result<bool, AdminError> {
        Ok(change.tightens(self.kinds[self.find(limit)?]))
    }

    /// Returns the rules without ended overrides, and the cells of these, which must
    /// [follow](crate::Table::follow_override).
    pub fn without_ended(&self, now_ns: u64) -> (Self, Vec<(LimitId, Box<str>)>) {
        let mut rules = self.clone();
        let is_over = |change: &Override| change.until_ns <= now_ns;
        let ended = self.overrides.iter().filter(|(_, change)| is_over(change));
        let ended = ended.map(|(key, _)| key.clone()).collect();
        rules.overrides.retain(|_, change| !is_over(change));
        (rules, ended)
    }

    /// Returns the rules without the override of a cell.
    pub fn without_override(&self, limit: &str, prefix: Prefix<'_>) -> Result<Self, AdminError> {
        let (_, key) = self.owned_key(limit, prefix)?;
        let mut rules = self.clone();
        match rules.overrides.remove(&key) {
            Some(_) => Ok(rules),
            None => Err(AdminError::None(prefix.to_string())),
        }
    }

    /// Returns the key of a limit's cell for a prefix, and its table. Fails if the limit has no
    /// cell for the prefix.
    pub fn key<'a>(&self, limit: &str, prefix: Prefix<'a>) -> Result<(Key<'a>, u16), AdminError> {
        let index = self.find(limit)?;
        let of = self.limit(index);
        if !of.pattern.covers_prefix(prefix.name, prefix.run) {
            return Err(AdminError::ForeignPrefix {
                limit: limit.to_owned(),
                prefix: prefix.to_string(),
                pattern: of.pattern.to_string(),
            });
        }
        let limit = self.id(index);
        Ok((Key { limit, prefix }, self.table_of(self.seed.hash(prefix))))
    }

    fn owned_key(
        &self,
        limit: &str,
        prefix: Prefix<'_>,
    ) -> Result<(usize, (LimitId, Box<str>)), AdminError> {
        let (key, _) = self.key(limit, prefix)?;
        Ok((self.find(limit)?, (key.limit, stored_prefix(prefix))))
    }

    fn find(&self, limit: &str) -> Result<usize, AdminError> {
        let found = self.policies.find(limit);
        found.ok_or_else(|| AdminError::UnknownLimit(limit.chars().take(128).collect()))
    }

    /// Returns the table of a prefix with that hash.
    pub(crate) fn table_of(&self, hash: u64) -> u16 {
        ((hash >> 32) & u64::from(self.tables - 1)) as u16
    }

    /// Returns the table of the cell with that key.
    pub fn table_of_key(&self, key: Key<'_>) -> u16 {
        match key.prefix.name {
            "" => self.overflow_table(key.limit),
            _ => self.table_of(self.seed.hash(key.prefix)),
        }
    }

    pub(crate) fn overflow_table(&self, limit: LimitId) -> u16 {
        self.table_of(Seed::of_limit(self.seed.0, limit))
    }

    /// Returns the table that stores the state of a subject as a whole: its holds.
    pub fn home_of(&self, subject: &Subject<'_>) -> u16 {
        self.table_of(self.seed.hash(Prefix {
            name: subject.name(),
            run: "",
        }))
    }

    /// Returns whether a limit is a bucket with a refill above 0.
    pub fn refills(&self, limit: LimitId) -> bool {
        let kind = self.policies.index(limit).map(|index| self.kinds[index]);
        matches!(kind, Some(Kind::Bucket(bucket)) if bucket.amount > 0)
    }

    /// Returns the halt that applies to the subject, with its prefix.
    pub fn halted(&self, subject: &Subject<'_>) -> Option<(&str, &Halt)> {
        if self.halts.is_empty() {
            return None;
        }
        let tiers = [Tier::Org, Tier::Namespace, Tier::Agent];
        let halted = tiers.into_iter().find_map(|tier| {
            let name = subject.prefix(tier);
            let alone = self.halts.get_key_value(name);
            alone.or_else(|| match subject.run() {
                "" => None,
                run => self.halts.get_key_value(&*Prefix { name, run }.to_string()),
            })
        });
        halted.map(|(prefix, halt)| (&**prefix, halt))
    }

    /// Returns the available amount of a cell, rounded down, and its capacity.
    pub fn balance(&self, key: Key<'_>, cell: &Cell, now_ns: u64) -> Option<(i128, u64)> {
        let index = self.policies.index(key.limit)?;
        let mut cell = *cell;
        let (kind, _) = self.bring_up(index, &mut cell, key.prefix, now_ns);
        let dial = &self.dials[index];
        let capacity = kind.capacity_by(dial.factor_at(now_ns));
        Some((cell.have(&kind, dial, now_ns), capacity))
    }

    /// Brings a cell up to date. Returns the kind in force, and the end of the override if one
    /// applies.
    pub(crate) fn bring_up(
        &self,
        index: usize,
        cell: &mut Cell,
        prefix: Prefix<'_>,
        now_ns: u64,
    ) -> (Kind, Option<u64>) {
        let (base, dial) = (self.kinds[index], &self.dials[index]);
        let change = match cell.is_overridden {
            false => None,
            true => self.overrides.get(&(cell.limit, stored_prefix(prefix))),
        };
        if let Some(change) = change {
            let kind = change.kind(base);
            if now_ns < change.until_ns {
                cell.accrue(&kind, dial, now_ns);
                return (kind, Some(change.until_ns));
            }
            cell.accrue(&kind, dial, change.until_ns);
            cell.reconfigure(&kind, &base, dial, change.until_ns);
        }
        cell.is_overridden = false;
        cell.accrue(&base, dial, now_ns);
        (base, None)
    }
}

/// Returns a prefix as cells store it.
pub(crate) fn stored_prefix(prefix: Prefix<'_>) -> Box<str> {
    match prefix.run {
        "" => prefix.name.into(),
        run => format!("{}?{run}", prefix.name).into(),
    }
}
