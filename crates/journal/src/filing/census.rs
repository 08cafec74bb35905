//! A census: counts the dead bytes of each extent, from its stream table and the current starts of
//! the streams.
//!
//! Each call for a new census starts a generation, in which every extent is counted again. To get a
//! count from after a certain moment, call for a census at that moment and compare generations.

use std::collections::HashMap;
use std::sync::Arc;

use super::erasures::EraseTargets;
use super::{FilingError, Line};
use crate::extent::{Entries, Extent, ExtentSet};

/// Entries per step.
const STEP_ENTRIES: usize = 10_000;

/// Minimum time between two censuses, in milliseconds; one more for each [`ENTRIES_PER_MS`] entries
/// to count.
const INTERVAL_MS: u64 = 1_000;
const ENTRIES_PER_MS: u64 = 100;

/// Result of counting one extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) dead: u64,
    pub(super) is_unerased: bool,
    generation: u64,
}

/// All counts, and the one that is under way.
#[derive(Debug, Default)]
pub(super) struct Census {
    generation: u64,
    counts: HashMap<u64, Count>,
    current: Option<CountInProgress>,
    /// Value of [`Line::trims`] at the last census. `None` before the first one, which counts what
    /// was trimmed before the start.
    trims: Option<u64>,
    /// Time of the last census.
    called_ms: u64,
    /// No extent is left to count.
    is_complete: bool,
}

#[derive(Debug)]
struct CountInProgress {
    extent: Arc<Extent>,
    entries: Entries,
    count: Count,
}

impl Census {
    /// Starts a new census of all extents. Returns its generation.
    pub(super) fn call(&mut self) -> u64 {
        self.generation += 1;
        self.is_complete = false;
        self.generation
    }

    /// Starts a new census if streams were trimmed and the last one is long enough ago.
    pub(super) fn call_if_due(&mut self, line: &dyn Line, extents: &ExtentSet, now_ms: u64) {
        if self
            .due_ms(line, extents)
            .is_some_and(|due_ms| due_ms <= now_ms)
        {
            (self.trims, self.called_ms) = (Some(line.trims()), now_ms);
            self.call();
        }
    }

    /// Returns when the next census is due; `None` if no stream was trimmed since the last.
    pub(super) fn due_ms(&self, line: &dyn Line, extents: &ExtentSet) -> Option<u64> {
        let Some(trims) = self.trims else {
            return Some(0);
        };
        if trims == line.trims() {
            return None;
        }
        let entries: u64 = extents.iter().map(|extent| extent.streams()).sum();
        Some(self.called_ms + INTERVAL_MS + entries / ENTRIES_PER_MS)
    }

    /// Returns the current generation.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the count of an extent.
    pub(super) fn count(&self, number: u64) -> Count {
        self.counts.get(&number).copied().unwrap_or_default()
    }

    /// Returns true if every extent was counted in this generation or a later one.
    pub(super) fn has_counted(&self, extents: &ExtentSet, generation: u64) -> bool {
        extents.iter().all(|extent| {
            let count = self.counts.get(&extent.identity().number);
            count.is_some_and(|count| count.generation >= generation)
        })
    }

    /// Replaces the counts of `gone` by an empty one for the new extent `number`, as of
    /// `generation`.
    pub(super) fn replace(&mut self, gone: &[u64], number: u64, generation: u64) {
        for number in gone {
            self.counts.remove(number);
        }
        // Frees the memory and the file of an extent that does not matter any more.
        let is_gone = |it: &CountInProgress| gone.contains(&it.extent.identity().number);
        if self.current.as_ref().is_some_and(is_gone) {
            self.current = None;
        }
        self.counts.insert(
            number,
            Count {
                generation,
                ..Count::default()
            },
        );
        self.is_complete = false;
    }

    /// Adds a new extent that is not counted yet: one in place has every record of its segment, dead or
    /// not.
    pub(super) fn add(&mut self) {
        self.is_complete = false;
    }

    /// Counts some entries. `targets` has the erases in progress. Returns false if there is nothing
    /// to count.
    pub(super) fn step(
        &mut self,
        line: &dyn Line,
        extents: &ExtentSet,
        targets: Option<&EraseTargets>,
    ) -> Result<bool, FilingError> {
        if self.is_complete {
            return Ok(false);
        }
        if self.current.is_none() {
            self.current = self.begin(extents)?;
        }
        let Some(counting) = &mut self.current else {
            self.is_complete = true;
            return Ok(false);
        };
        match counting.step(line, targets) {
            Ok(false) => {}
            Ok(true) => {
                let number = counting.extent.identity().number;
                self.counts.insert(number, counting.count);
                self.current = None;
            }
            Err(error) => {
                // The position in the table is unknown after an error.
                self.current = None;
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Begins to count the next extent that was not counted in this generation.
    fn begin(&self, extents: &ExtentSet) -> Result<Option<CountInProgress>, FilingError> {
        let is_counted = |extent: &Arc<Extent>| {
            let count = self.counts.get(&extent.identity().number);
            count.is_some_and(|count| count.generation >= self.generation)
        };
        let Some(extent) = extents.iter().find(|extent| !is_counted(extent)) else {
            return Ok(None);
        };
        let (extent, entries) = (extent.clone(), Entries::new(extent.clone())?);
        let count = Count {
            generation: self.generation,
            ..Count::default()
        };
        Ok(Some(CountInProgress {
            extent,
            entries,
            count,
        }))
    }
}

impl CountInProgress {
    /// Counts some entries. Returns true after the last.
    fn step(
        &mut self,
        line: &dyn Line,
        targets: Option<&EraseTargets>,
    ) -> Result<bool, FilingError> {
        let shard = self.extent.identity().shard;
        for _ in 0..STEP_ENTRIES {
            let Some(entry) = self.entries.peek() else {
                return Ok(true);
            };
            if entry.records > 0 {
                let start = line.start(shard, entry.stream);
                self.count.dead += entry.dead_bytes(start);
                let below = targets.and_then(|targets| targets.get(&(shard, entry.stream)));
                self.count.is_unerased |= below.is_some_and(|&below| entry.holds_below(below));
            }
            self.entries.advance()?;
        }
        Ok(false)
    }
}
