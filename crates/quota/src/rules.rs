//! Everything that a decision rests on beside the cells: the limits, and what was changed since.
//!
//! Rules are a value. A change makes others of them; the shell puts those in the place of the old
//! ones while nothing is decided, and has its tables [follow](crate::Table::follow).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admin::{AdminError, Halt, Override};
use crate::cell::Cell;
use crate::dial::{Dial, Factor};
use crate::key::{Key, Seed};
use crate::limit::{Kind, Limit, LimitId};
use crate::policies::Policies;
use crate::subject::{Prefix, Subject, Tier};

/// Overrides at most, and halts.
const CHANGES_MAX: usize = 10_000;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) policies: Arc<Policies>,
    /// Of each limit, as it refills: weighed.
    kinds: Vec<Kind>,
    pub(crate) dials: Vec<Dial>,
    pub(crate) halts: BTreeMap<Box<str>, Halt>,
    pub(crate) overrides: BTreeMap<(LimitId, Box<str>), Override>,
    pub(crate) seed: Seed,
    tables: u16,
    /// Of every dial.
    calendar_shift_ns: i64,
}

impl Rules {
    /// Without any limit. Cells lie in `tables` tables, a power of two.
    ///
    /// # Panics
    /// If `tables` is no power of two.
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

    /// The limits.
    pub fn policies(&self) -> &Arc<Policies> {
        &self.policies
    }

    /// Whether there is anything to decide.
    pub fn is_empty(&self) -> bool {
        self.policies.limits().is_empty() && self.halts.is_empty()
    }

    /// How many tables cells lie in.
    pub fn table_count(&self) -> u16 {
        self.tables
    }

    /// What is halted.
    pub fn halts(&self) -> &BTreeMap<Box<str>, Halt> {
        &self.halts
    }

    /// What stands instead of limits, for one prefix each.
    pub fn overrides(&self) -> &BTreeMap<(LimitId, Box<str>), Override> {
        &self.overrides
    }

    /// How a limit's own time passes.
    pub fn dial(&self, index: usize) -> &Dial {
        &self.dials[index]
    }

    /// The limit that stands there.
    pub fn limit(&self, index: usize) -> &Arc<Limit> {
        &self.policies.limits()[index].1
    }

    pub(crate) fn id(&self, index: usize) -> LimitId {
        self.policies.limits()[index].0
    }

    pub(crate) fn kind(&self, index: usize) -> &Kind {
        &self.kinds[index]
    }

    /// With other limits. A factor that was set for a time goes on to stand.
    #[must_use]
    pub fn with_policies(&self, policies: Policies, now_ns: u64) -> Self {
        let dial = |(id, limit): &(LimitId, Arc<Limit>)| {
            let Some(old) = self.policies.index(*id) else {
                return Dial::new(limit.factor, now_ns);
            };
            let (dial, standing) = (self.dials[old], self.limit(old).factor);
            let then = dial.then.filter(|(until_ns, _)| now_ns < *until_ns);
            match then {
                Some((until_ns, _)) => {
                    dial.turned(now_ns, dial.factor, Some((until_ns, limit.factor)))
                }
                // One that was set for good stands until the limit says another.
                None if standing == limit.factor => dial,
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

    /// With a wall clock that is so many nanoseconds ahead of the node's: budgets follow it, buckets
    /// do not. Tables are to [follow](crate::Table::follow_calendar).
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

    /// With a factor on a limit, until a moment or for good.
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

    /// With nothing admitted for a prefix.
    pub fn with_halt(&self, prefix: Prefix<'_>, halt: Halt) -> Result<Self, AdminError> {
        let mut rules = self.clone();
        rules.halts.insert(prefix.to_string().into(), halt);
        match rules.halts.len() > CHANGES_MAX {
            true => Err(AdminError::TooMany(CHANGES_MAX)),
            false => Ok(rules),
        }
    }

    /// With what was halted admitted again.
    pub fn without_halt(&self, prefix: Prefix<'_>) -> Result<Self, AdminError> {
        let mut rules = self.clone();
        let prefix = prefix.to_string();
        match rules.halts.remove(&*prefix) {
            Some(_) => Ok(rules),
            None => Err(AdminError::None(prefix)),
        }
    }

    /// With another capacity or refill for one cell.
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
            return Err(AdminError::Range("it would have ended already"));
        }
        let mut rules = self.clone();
        rules.overrides.insert(key, change);
        match rules.overrides.len() > CHANGES_MAX {
            true => Err(AdminError::TooMany(CHANGES_MAX)),
            false => Ok(rules),
        }
    }

    /// Whether an override gives no more than its limit.
    pub fn tightens(&self, limit: &str, change: &Override) -> Result<bool, AdminError> {
        Ok(change.tightens(self.kinds[self.find(limit)?]))
    }

    /// Overrides that have ended, and the rules without them: their cells are to
    /// [follow](crate::Table::follow_override).
    pub fn without_ended(&self, now_ns: u64) -> (Self, Vec<(LimitId, Box<str>)>) {
        let mut rules = self.clone();
        let is_over = |change: &Override| change.until_ns <= now_ns;
        let ended = self.overrides.iter().filter(|(_, change)| is_over(change));
        let ended = ended.map(|(key, _)| key.clone()).collect();
        rules.overrides.retain(|_, change| !is_over(change));
        (rules, ended)
    }

    /// With the limit as it stands for that cell.
    pub fn without_override(&self, limit: &str, prefix: Prefix<'_>) -> Result<Self, AdminError> {
        let (_, key) = self.owned_key(limit, prefix)?;
        let mut rules = self.clone();
        match rules.overrides.remove(&key) {
            Some(_) => Ok(rules),
            None => Err(AdminError::None(prefix.to_string())),
        }
    }

    /// The cell of a limit for a prefix, if there can be one, and the table that it lies in.
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
        Ok((self.find(limit)?, (key.limit, stored(prefix))))
    }

    fn find(&self, limit: &str) -> Result<usize, AdminError> {
        let found = self.policies.find(limit);
        found.ok_or_else(|| AdminError::UnknownLimit(limit.chars().take(128).collect()))
    }

    /// The table of a prefix of that hash.
    pub(crate) fn table_of(&self, hash: u64) -> u16 {
        ((hash >> 32) & u64::from(self.tables - 1)) as u16
    }

    /// The table of what lies under that key.
    pub fn table_of_key(&self, key: Key<'_>) -> u16 {
        match key.prefix.name {
            "" => self.overflow_table(key.limit),
            _ => self.table_of(self.seed.hash(key.prefix)),
        }
    }

    pub(crate) fn overflow_table(&self, limit: LimitId) -> u16 {
        self.table_of(Seed::of_limit(self.seed.0, limit))
    }

    /// The table in which is kept what belongs to a subject as a whole: what it holds.
    pub fn home_of(&self, subject: &Subject<'_>) -> u16 {
        self.table_of(self.seed.hash(Prefix {
            name: subject.name(),
            run: "",
        }))
    }

    /// Whether a limit is a bucket to which anything comes back.
    pub fn refills(&self, limit: LimitId) -> bool {
        let kind = self.policies.index(limit).map(|index| self.kinds[index]);
        matches!(kind, Some(Kind::Bucket(bucket)) if bucket.amount > 0)
    }

    /// The prefix for which nothing is admitted, if the subject has one.
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

    /// What is left of a cell, rounded down, and what there is at most.
    pub fn standing(&self, key: Key<'_>, cell: &Cell, now_ns: u64) -> Option<(i128, u64)> {
        let index = self.policies.index(key.limit)?;
        let mut cell = *cell;
        let (kind, _) = self.bring_up(index, &mut cell, key.prefix, now_ns);
        let dial = &self.dials[index];
        let capacity = kind.capacity_by(dial.factor_at(now_ns));
        Some((cell.have(&kind, dial, now_ns), capacity))
    }

    /// Brings a cell up to date, and says what stands for it now, and until when.
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
            true => self.overrides.get(&(cell.limit, stored(prefix))),
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

/// A prefix as cells keep it.
pub(crate) fn stored(prefix: Prefix<'_>) -> Box<str> {
    match prefix.run {
        "" => prefix.name.into(),
        run => format!("{}?{run}", prefix.name).into(),
    }
}
