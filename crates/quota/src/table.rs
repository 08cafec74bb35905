//! A table of cells by limit and prefix. The shell divides all cells among several tables, each
//! with its own lock.
//!
//! The number of cells in a table is bounded. When it is reached, a *full* cell is evicted, as that
//! loses nothing. If no full cell is found, new subjects share one overflow cell per limit.
//! Invariant: *an evicted cell comes back in the state in which it left.*
//!
//! Cells lie in pages and never move; the index stores their numbers. A cell takes about 60 bytes
//! plus its key, however much the index has grown.

use hashbrown::HashTable;

use crate::cell::Cell;
use crate::key::{Key, Seed};
use crate::limit::LimitId;
use crate::plan::Plan;
use crate::rules::Rules;
use crate::subject::Subject;

/// The number of a cell in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellId(u32);

/// The result of a search for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellLookup {
    /// The cell exists.
    Cell(CellId),
    /// The cell does not exist, and there is room for it.
    Room,
    /// The cell does not exist, and there is no room for it.
    Full,
}

/// Counters of searches that found a full table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Searches for which a full cell was evicted.
    pub evicted: u64,
    /// Searches without an evictable cell, which used the shared overflow cell instead.
    pub refused: u64,
}

const PAGE: usize = 256;
/// Number of cells that one search for a full cell examines.
const EVICTION_PROBES_MAX: usize = 64;

struct Entry {
    cell: Cell,
    /// Empty in a slot without a cell.
    key: Box<[u8]>,
}

/// The limit of slots without a cell; no limit has this id.
const NO_LIMIT: LimitId = LimitId(0);

/// A table of cells; see the module's documentation.
pub struct Table {
    seed: Seed,
    index: HashTable<u32>,
    pages: Vec<Vec<Entry>>,
    free: Vec<u32>,
    /// The slot at which the last search for a full cell ended.
    hand: usize,
    cells_max: usize,
    dirty: Vec<CellId>,
    tally: Tally,
}

impl Table {
    /// Creates a table with room for `cells_max` cells.
    pub fn new(seed: Seed, cells_max: usize) -> Self {
        Self {
            seed,
            index: HashTable::new(),
            pages: Vec::new(),
            free: Vec::new(),
            hand: 0,
            cells_max: cells_max.max(1),
            dirty: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Returns the counters since the table was created.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether the table has no cells.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Searches a cell. If it does not exist, makes room for it if possible.
    pub(crate) fn find(
        &mut self,
        rules: &Rules,
        key: Key<'_>,
        hash: u64,
        now_ns: u64,
    ) -> CellLookup {
        match self.get(key, hash) {
            Some(id) => CellLookup::Cell(id),
            None if self.len() < self.cells_max || key.prefix.name.is_empty() => CellLookup::Room,
            None => match self.evict(rules, now_ns) {
                true => {
                    self.tally.evicted += 1;
                    CellLookup::Room
                }
                false => {
                    self.tally.refused += 1;
                    CellLookup::Full
                }
            },
        }
    }

    /// Returns the cell with that key.
    pub(crate) fn get(&self, key: Key<'_>, hash: u64) -> Option<CellId> {
        let is_it = |id: &u32| {
            let entry = self.entry(*id);
            entry.cell.limit == key.limit && key.is(&entry.key)
        };
        self.index.find(hash, is_it).map(|id| CellId(*id))
    }

    /// Returns the stored state of a cell, without the refill since.
    pub(crate) fn cell(&self, id: CellId) -> &Cell {
        &self.entry(id.0).cell
    }

    /// Stores a cell in place of `found`, or as a new one, and marks it dirty. `found` is checked
    /// again, because the slot may have been reused for another cell since.
    pub(crate) fn put(&mut self, found: Option<CellId>, key: Key<'_>, hash: u64, mut cell: Cell) {
        let found = found.filter(|id| {
            let entry = self.entry(id.0);
            entry.cell.limit == key.limit && key.is(&entry.key)
        });
        let was_dirty = found.is_some_and(|id| self.cell(id).is_dirty);
        cell.is_dirty = true;
        let id = match found {
            Some(id) => {
                self.entry_mut(id.0).cell = cell;
                id
            }
            None => self.insert(key.to_bytes(), hash, cell),
        };
        if !was_dirty {
            self.dirty.push(id);
        }
    }

    fn insert(&mut self, key: Box<[u8]>, hash: u64, cell: Cell) -> CellId {
        let entry = Entry { cell, key };
        let id = match self.free.pop() {
            Some(id) => {
                *self.entry_mut(id) = entry;
                id
            }
            None => {
                if self.pages.last().is_none_or(|page| page.len() == PAGE) {
                    self.pages.push(Vec::with_capacity(PAGE));
                }
                let last = self.pages.len() - 1;
                self.pages[last].push(entry);
                (last * PAGE + self.pages[last].len() - 1) as u32
            }
        };
        let (pages, seed) = (&self.pages, self.seed);
        self.index.insert_unique(hash, id, |id| {
            let entry = &pages[*id as usize / PAGE][*id as usize % PAGE];
            hash_of(seed, entry)
        });
        CellId(id)
    }

    /// Removes a cell.
    pub(crate) fn remove(&mut self, id: CellId) {
        let hash = hash_of(self.seed, self.entry(id.0));
        if let Ok(found) = self.index.find_entry(hash, |known| *known == id.0) {
            found.remove();
            let entry = self.entry_mut(id.0);
            entry.key = Box::default();
            entry.cell.limit = NO_LIMIT;
            // The id may stay in the list of dirty cells: `is_dirty` of the cell decides.
            entry.cell.is_dirty = false;
            self.free.push(id.0);
        }
    }

    /// Makes room by removing a cell that equals a new one.
    fn evict(&mut self, rules: &Rules, now_ns: u64) -> bool {
        let slots = self.slots();
        for _ in 0..EVICTION_PROBES_MAX.min(slots) {
            self.hand = (self.hand + 1) % slots;
            let id = self.hand as u32;
            if self.is_idle(rules, id, now_ns) {
                self.remove(CellId(id));
                return true;
            }
        }
        false
    }

    /// Returns whether removing a cell loses nothing, neither in memory nor in the journal.
    fn is_idle(&self, rules: &Rules, id: u32, now_ns: u64) -> bool {
        let entry = self.entry(id);
        if entry.cell.limit == NO_LIMIT || entry.cell.is_dirty || entry.key.is_empty() {
            return false;
        }
        let Some(index) = rules.policies.index(entry.cell.limit) else {
            return true;
        };
        let Some(key) = Key::from_bytes(entry.cell.limit, &entry.key) else {
            return false;
        };
        let mut cell = entry.cell;
        let (kind, until_ns) = rules.bring_up(index, &mut cell, key.prefix, now_ns);
        until_ns.is_none() && cell.is_full(&kind)
    }

    /// Converts all cells to new rules; must run before the next decision. Cells of removed limits
    /// are removed, others are reconfigured.
    pub fn follow(&mut self, old: &Rules, new: &Rules, now_ns: u64) {
        for id in 0..self.slots() as u32 {
            let entry = self.entry(id);
            let limit = entry.cell.limit;
            if limit == NO_LIMIT {
                continue;
            }
            let (Some(from), Some(to)) = (old.policies.index(limit), new.policies.index(limit))
            else {
                self.remove(CellId(id));
                continue;
            };
            let Some(key) = Key::from_bytes(limit, &entry.key) else {
                continue;
            };
            let is_foreign = old.limit(from).pattern != new.limit(to).pattern
                && !entry.key.is_empty()
                && !new
                    .limit(to)
                    .pattern
                    .covers_prefix(key.prefix.name, key.prefix.run);
            if is_foreign {
                self.remove(CellId(id));
                continue;
            }
            let mut cell = entry.cell;
            let (old_kind, _) = old.bring_up(from, &mut cell, key.prefix, now_ns);
            cell.is_overridden |= new.overrides.contains_key(&(limit, stored_key(key)));
            let mut probe = cell;
            let (new_kind, _) = new.bring_up(to, &mut probe, key.prefix, now_ns);
            if old_kind != new_kind || entry.cell.is_overridden != cell.is_overridden {
                cell.reconfigure(&old_kind, &new_kind, &new.dials[to], now_ns);
                cell.is_overridden = probe.is_overridden;
                self.touch(CellId(id), cell);
            }
        }
    }

    /// Adjusts budgets to a wall clock that was stepped. A budget whose period lies in the future
    /// counts as spent in the current period, so that a clock that was ahead blocks takes no longer
    /// than that.
    pub fn follow_calendar(&mut self, rules: &Rules, now_ns: u64) {
        for id in 0..self.slots() as u32 {
            let entry = self.entry(id);
            let Some(index) = rules.policies.index(entry.cell.limit) else {
                continue;
            };
            let mut cell = entry.cell;
            if cell.clamp_period(rules.kind(index), rules.dial(index), now_ns) {
                self.touch(CellId(id), cell);
            }
        }
    }

    /// Creates the missing buckets of a plan as if they had been empty at `since_ns`. Returns false
    /// if there is no room for one.
    pub fn begin_empty(
        &mut self,
        rules: &Rules,
        plan: &Plan,
        subject: &Subject<'_>,
        since_ns: u64,
        now_ns: u64,
    ) -> bool {
        plan.steps.iter().all(|step| {
            let key = step.key(rules, subject);
            match self.find(rules, key, step.hash, now_ns) {
                CellLookup::Cell(_) => true,
                CellLookup::Full => false,
                CellLookup::Room => {
                    let (kind, dial) = (rules.kind(step.index), rules.dial(step.index));
                    let mut cell = Cell::full(key.limit, kind, dial, since_ns);
                    cell.debit(kind, i128::from(kind.capacity()));
                    self.put(None, key, step.hash, cell);
                    true
                }
            }
        })
    }

    /// Applies a new or removed override to a cell, which is created if necessary, and adds the
    /// granted credit.
    pub fn follow_override(
        &mut self,
        old: &Rules,
        new: &Rules,
        key: Key<'_>,
        granted: u64,
        now_ns: u64,
    ) {
        let Some(index) = new.policies.index(key.limit) else {
            return;
        };
        let hash = Seed::of_limit(new.seed.hash(key.prefix), key.limit);
        let found = self.get(key, hash);
        let dial = &new.dials[index];
        let fresh = || Cell::full(key.limit, new.kind(index), dial, now_ns);
        let mut cell = found.map_or_else(fresh, |id| *self.cell(id));
        let (old_kind, _) = old.bring_up(index, &mut cell, key.prefix, now_ns);
        let change = new.overrides.get(&(key.limit, stored_key(key)));
        let new_kind = change.map_or(*new.kind(index), |change| change.kind(*new.kind(index)));
        cell.reconfigure(&old_kind, &new_kind, dial, now_ns);
        cell.grant(&new_kind, granted);
        cell.is_overridden = change.is_some();
        self.put(found, key, hash, cell);
    }

    fn touch(&mut self, id: CellId, mut cell: Cell) {
        let was_dirty = self.cell(id).is_dirty;
        cell.is_dirty = true;
        self.entry_mut(id.0).cell = cell;
        if !was_dirty {
            self.dirty.push(id);
        }
    }

    /// Returns whether any cell differs from its journal record.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Calls `each` for every cell that differs from its journal record.
    pub fn each_dirty(&self, mut each: impl FnMut(Key<'_>, &Cell)) {
        for id in &self.dirty {
            let entry = self.entry(id.0);
            let key = Key::from_bytes(entry.cell.limit, &entry.key);
            if let Some(key) = key.filter(|_| entry.cell.is_dirty) {
                each(key, &entry.cell);
            }
        }
    }

    /// Marks all cells as journaled.
    pub fn clean(&mut self) {
        for id in std::mem::take(&mut self.dirty) {
            self.entry_mut(id.0).cell.is_dirty = false;
        }
    }

    /// Resets a cell, if it exists, to the state of a new one; slots that are held stay held.
    pub fn reset(&mut self, rules: &Rules, key: Key<'_>, now_ns: u64) {
        let hash = Seed::of_limit(rules.seed.hash(key.prefix), key.limit);
        let (Some(id), Some(index)) = (self.get(key, hash), rules.policies.index(key.limit)) else {
            return;
        };
        let mut cell = *self.cell(id);
        let (kind, _) = rules.bring_up(index, &mut cell, key.prefix, now_ns);
        cell.refill(&kind, rules.dial(index), now_ns);
        self.touch(id, cell);
    }

    /// Calls `each` for up to `count` slots starting at `from`. Returns the next slot, or `None` at
    /// the end.
    pub fn walk(
        &self,
        from: usize,
        count: usize,
        mut each: impl FnMut(Key<'_>, &Cell),
    ) -> Option<usize> {
        let end = from.saturating_add(count).min(self.slots());
        for id in from..end {
            let entry = self.entry(id as u32);
            let key = Key::from_bytes(entry.cell.limit, &entry.key);
            if let Some(key) = key.filter(|key| key.limit != NO_LIMIT) {
                each(key, &entry.cell);
            }
        }
        (end < self.slots()).then_some(end)
    }

    /// Restores a cell from its journal record. A later record replaces an earlier one.
    pub fn restore(&mut self, key: Key<'_>, cell: Cell) {
        let hash = Seed::of_limit(self.seed.hash(key.prefix), key.limit);
        match self.get(key, hash) {
            Some(id) => self.entry_mut(id.0).cell = cell,
            None => {
                self.insert(key.to_bytes(), hash, cell);
            }
        }
    }

    /// Returns the number of slots, with and without a cell.
    fn slots(&self) -> usize {
        match self.pages.split_last() {
            Some((last, full)) => full.len() * PAGE + last.len(),
            None => 0,
        }
    }

    fn entry(&self, id: u32) -> &Entry {
        &self.pages[id as usize / PAGE][id as usize % PAGE]
    }

    fn entry_mut(&mut self, id: u32) -> &mut Entry {
        &mut self.pages[id as usize / PAGE][id as usize % PAGE]
    }
}

fn stored_key(key: Key<'_>) -> Box<str> {
    crate::rules::stored_prefix(key.prefix)
}

fn hash_of(seed: Seed, entry: &Entry) -> u64 {
    let key = Key::from_bytes(entry.cell.limit, &entry.key);
    key.map_or(0, |key| Seed::of_limit(seed.hash(key.prefix), key.limit))
}
