//! Catching up: builds the views from the directory first, and then applies events.
//!
//! Each batch is one transaction that includes the position reached. An event only names the
//! conversation to look at. Looking reads all durable data, so applying a batch twice gives the
//! same result.

use std::collections::{BTreeMap, BTreeSet};

use super::advance::{self, Advancing, participant_scopes};
use super::damage::Damage;
use super::entry::Entry;
use super::reported::{Reported, ReportedChanges};
use super::scope::Scope;
use super::source::{Changed, EventItem, Partition, Source};
use super::tables::{Batch, Fact, Sync, Tables};

/// Maximum number of events, or streams of the directory, per batch.
const BATCH: usize = 10_000;

/// Maximum number of conversations whose messages are read together: the blocks that they share are
/// read once, and their entries are in memory meanwhile.
const TOGETHER: usize = 256;

/// The progress since the tables were opened.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// Maximum number of events or streams per batch.
    batch: usize,
    /// The partitions, each with the next event to apply.
    partitions: Vec<(Partition, u64)>,
    /// The end of the directory when the build began.
    end: Option<u64>,
    /// True once the build from the directory is known to be complete.
    is_built: bool,
    /// Number of conversations looked at, for the counters.
    pub(super) looked_at: u64,
}

/// The progress of the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BuildProgress {
    /// The next stream to look at.
    pub(super) next: u64,
    /// The end of the directory.
    pub(super) end: u64,
}

/// The result of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchOutcome {
    /// Nothing could be applied.
    Nothing,
    /// Something was applied, and there may be more.
    Applied,
}

/// The reason why a batch failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The views' file cannot be used.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// Events cannot be read.
    #[error("the events of conversations cannot be read: {0}")]
    Events(#[from] journal::ReadError),
    /// The next events do not exist: the views belong to another history of the journal.
    #[error("the views belong to another history of the journal")]
    Lost,
}

/// The watched scopes and the changes to report to their watchers.
pub(super) struct WatchedScopes<'a> {
    /// The watched scopes.
    pub(super) scopes: &'a BTreeSet<Scope>,
    /// The changed conversations, by scope.
    pub(super) changed: Vec<(Scope, u64)>,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self::with_batch_size(BATCH)
    }
}

impl CatchUp {
    /// Creates the state with that batch size.
    pub(super) fn with_batch_size(batch: usize) -> Self {
        Self {
            batch,
            partitions: Vec::new(),
            end: None,
            is_built: false,
            looked_at: 0,
        }
    }

    /// Applies one batch.
    pub(super) fn step(
        &mut self,
        tables: &Tables,
        source: &impl Source,
        sync: Sync,
        watched: &mut WatchedScopes<'_>,
    ) -> Result<BatchOutcome, Failure> {
        if !self.is_built {
            match tables.fact(Fact::Build)?.unwrap_or_default() {
                0 => self.is_built = true,
                from => return self.build(tables, source, from, sync),
            }
        }
        self.follow(tables, source, sync, watched)
    }

    /// Returns whether the build is complete, and the number of events applied.
    pub(super) fn progress(&self) -> (bool, u64) {
        (
            self.is_built,
            self.partitions.iter().map(|(_, next)| next).sum(),
        )
    }

    /// Returns whether all events before these ends of the partitions were applied.
    pub(super) fn has_reached(&self, ends: &[u64]) -> bool {
        let reached = self.partitions.iter().zip(ends);
        self.is_built
            && ends.len() <= self.partitions.len()
            && reached.into_iter().all(|((_, next), end)| next >= end)
    }

    /// Returns the progress of the build; `None` once it is complete.
    pub(super) fn build_progress(&self, tables: &Tables) -> Result<Option<BuildProgress>, Damage> {
        let next = tables.fact(Fact::Build)?.unwrap_or_default();
        let end = self.end.unwrap_or(next);
        Ok((next > 0).then_some(BuildProgress { next, end }))
    }

    /// Looks at the streams from number `from` on; streams that are no conversations are skipped.
    fn build(
        &mut self,
        tables: &Tables,
        source: &impl Source,
        from: u64,
        sync: Sync,
    ) -> Result<BatchOutcome, Failure> {
        let end = *self.end.get_or_insert_with(|| source.numbers_end());
        let next = end.min(from.saturating_add(self.batch as u64));
        self.looked_at += next - from;
        tables.write(sync, |batch| {
            if from == 1 {
                // Later changes are reported by events, and so are conversations that are not
                // durable yet, or get a number that was looked at.
                for partition in source.partitions(0) {
                    let end = source.reach(partition).end;
                    batch.set_checkpoint(partition.stream, end)?;
                }
            }
            let numbers: Vec<_> = (from..next).collect();
            for numbers in numbers.chunks(TOGETHER) {
                let look = |number: &u64| Look {
                    number: *number,
                    old: None,
                    changed: Changed::State,
                };
                let looks = numbers.iter().map(|number| (look(number), None));
                for (look, new) in advance_all(source, looks.collect(), "") {
                    batch.replace(look.number, None, new.as_ref())?;
                }
            }
            let is_done = next >= end;
            batch.set_fact(Fact::Build, if is_done { 0 } else { next })?;
            Ok::<_, Failure>(BatchOutcome::Applied)
        })
    }

    fn follow(
        &mut self,
        tables: &Tables,
        source: &impl Source,
        sync: Sync,
        watched: &mut WatchedScopes<'_>,
    ) -> Result<BatchOutcome, Failure> {
        for partition in source.partitions(self.partitions.len()) {
            let next = tables.checkpoint(partition.stream)?;
            self.partitions.push((partition, next));
        }
        let mut changes = ReportedChanges::default();
        let mut moved: Vec<(usize, u64)> = Vec::new();
        let mut left = self.batch;
        for (index, (partition, from)) in self.partitions.iter().enumerate() {
            let reach = source.reach(*partition);
            if *from > reach.end || *from < reach.start {
                return Err(Failure::Lost);
            }
            if *from == reach.end || left == 0 {
                continue;
            }
            let mut add = |item: EventItem<'_>| changes.add(item);
            let next = source.events(*partition, *from, left, &mut add)?;
            left = left.saturating_sub((next - from) as usize);
            if next > *from {
                moved.push((index, next));
            }
        }
        if moved.is_empty() {
            return Ok(BatchOutcome::Nothing);
        }
        tables.write(sync, |batch| {
            let dirty: Vec<_> = changes.conversations.iter().collect();
            for dirty in dirty.chunks(TOGETHER) {
                update(batch, source, dirty, &changes.texts, watched)?;
            }
            for (index, next) in &moved {
                batch.set_checkpoint(self.partitions[*index].0.stream, *next)?;
            }
            Ok::<_, Failure>(())
        })?;
        self.looked_at += changes.conversations.len() as u64;
        for (index, next) in moved {
            self.partitions[index].1 = next;
        }
        Ok(BatchOutcome::Applied)
    }
}

/// A conversation to look at.
struct Look {
    number: u64,
    /// The entry so far.
    old: Option<Entry>,
    changed: Changed,
}

/// A conversation to look at, and what its events report.
type ReportedLook<'r> = (Look, Option<&'r Reported>);

/// Returns the current entry of each conversation; `None` if it is not visible. The reported
/// messages have their authors in `texts`.
fn advance_all(
    source: &impl Source,
    looks: Vec<ReportedLook<'_>>,
    texts: &str,
) -> Vec<(Look, Option<Entry>)> {
    let mut wanted = Vec::new();
    let begin = |(look, reported): ReportedLook<'_>| {
        let mut begun = advance::begin(source, look.number, look.old.as_ref(), look.changed);
        // The state may be newer than the events, so it is not combined with their messages.
        let reported = reported.filter(|_| look.changed == Changed::Messages && look.old.is_some());
        if let Some(begun) = &mut begun {
            let is_done = reported.is_some_and(|reported| begun.take_reported(reported, texts));
            wanted.extend(begun.wanted().filter(|_| !is_done));
        }
        (look, begun)
    };
    let mut all: Vec<(Look, Option<Advancing>)> = looks.into_iter().map(begin).collect();
    let places = all.iter().enumerate();
    let places: BTreeMap<u64, usize> = places.map(|(at, (look, _))| (look.number, at)).collect();
    source.messages_of_many(&wanted, &mut |number, facts| {
        let place = places.get(&number).and_then(|place| all.get_mut(*place));
        if let Some((_, Some(advancing))) = place {
            advancing.take(facts);
        }
    });
    let finish = |(look, begun): (Look, Option<Advancing>)| (look, begun.map(Advancing::finish));
    all.into_iter().map(finish).collect()
}

/// Updates the entries of conversations.
fn update(
    batch: &mut Batch<'_>,
    source: &impl Source,
    dirty: &[(&u64, &Reported)],
    texts: &str,
    watched: &mut WatchedScopes<'_>,
) -> Result<(), Damage> {
    let mut looks = Vec::with_capacity(dirty.len());
    for (number, reported) in dirty {
        let Some(changed) = reported.changed else {
            continue;
        };
        let look = Look {
            number: **number,
            old: batch.entry(**number)?,
            changed,
        };
        looks.push((look, Some(*reported)));
    }
    for (Look { number, old, .. }, new) in advance_all(source, looks, texts) {
        batch.replace(number, old.as_ref(), new.as_ref())?;
        if !watched.scopes.is_empty() && old != new {
            let told = participant_scopes(old.as_ref(), new.as_ref());
            let told = told.into_iter().filter(|it| watched.scopes.contains(it));
            watched.changed.extend(told.map(|scope| (scope, number)));
        }
    }
    Ok(())
}
