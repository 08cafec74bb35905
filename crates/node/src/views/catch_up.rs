//! Taking what has happened: from the directory at first, from the events afterwards.
//!
//! A batch at a time, each in one transaction with the place up to which it goes. What the events
//! say is only which conversation to look at; the look takes all that is durable, so that a batch
//! may be taken twice and comes to the same.

use std::collections::{BTreeMap, BTreeSet};

use super::advance::{advance, everybody};
use super::damage::Damage;
use super::scope::Scope;
use super::source::{Changed, Partition, Source};
use super::tables::{Batch, Fact, Sync, Tables};

/// Events, or streams of the directory, of one batch.
const BATCH: usize = 10_000;

/// Taking what has happened, since the tables were opened.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// Events, or streams of the directory, that are taken at once.
    batch: usize,
    /// With the next event of each.
    partitions: Vec<(Partition, u64)>,
    /// Where the directory ended when it began.
    end: Option<u64>,
    /// Whether the directory is known to have been taken.
    is_built: bool,
    /// Conversations that were looked at, for whoever counts them.
    pub(super) looked_at: u64,
}

/// How far it is with the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Making {
    /// The stream to look at next.
    pub(super) next: u64,
    /// Where the directory ends.
    pub(super) end: u64,
}

/// What a batch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// There was nothing that can be taken.
    Nothing,
    /// There may be more.
    Some,
}

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The views' own file.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// The events cannot be read.
    #[error("the events of conversations cannot be read: {0}")]
    Events(#[from] journal::ReadError),
    /// The events that come next are not there: the views are of another history.
    #[error("the views are of another history than the journal")]
    Lost,
}

/// Who is told of which conversations.
pub(super) struct Watched<'a> {
    /// Those who want to be told.
    pub(super) scopes: &'a BTreeSet<Scope>,
    /// What they are told: which conversation has changed.
    pub(super) changed: Vec<(Scope, u64)>,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self::of(BATCH)
    }
}

impl CatchUp {
    /// One that takes so much at once.
    pub(super) fn of(batch: usize) -> Self {
        Self {
            batch,
            partitions: Vec::new(),
            end: None,
            is_built: false,
            looked_at: 0,
        }
    }

    /// Takes one batch.
    pub(super) fn step(
        &mut self,
        tables: &Tables,
        source: &impl Source,
        sync: Sync,
        watched: &mut Watched<'_>,
    ) -> Result<Taken, Failure> {
        if !self.is_built {
            match tables.fact(Fact::Build)?.unwrap_or_default() {
                0 => self.is_built = true,
                from => return self.build(tables, source, from, sync),
            }
        }
        self.follow(tables, source, sync, watched)
    }

    /// Whether it is done with the directory, and how many events it has taken.
    pub(super) fn progress(&self) -> (bool, u64) {
        (
            self.is_built,
            self.partitions.iter().map(|(_, next)| next).sum(),
        )
    }

    /// Whether everything before these ends of the partitions was taken.
    pub(super) fn has_reached(&self, ends: &[u64]) -> bool {
        let reached = self.partitions.iter().zip(ends);
        self.is_built
            && ends.len() <= self.partitions.len()
            && reached.into_iter().all(|((_, next), end)| next >= end)
    }

    /// How far it is with the directory; `None` when it is done with it.
    pub(super) fn making(&self, tables: &Tables) -> Result<Option<Making>, Damage> {
        let next = tables.fact(Fact::Build)?.unwrap_or_default();
        let end = self.end.unwrap_or(next);
        Ok((next > 0).then_some(Making { next, end }))
    }

    /// Looks at streams from `from` on, whatever they are.
    fn build(
        &mut self,
        tables: &Tables,
        source: &impl Source,
        from: u64,
        sync: Sync,
    ) -> Result<Taken, Failure> {
        let end = *self.end.get_or_insert_with(|| source.numbers_end());
        let batch_end = end.min(from.saturating_add(self.batch as u64));
        let settled = (from..batch_end).find(|it| !source.is_settled(*it));
        let next = settled.unwrap_or(batch_end);
        if next == from && next < end {
            return Ok(Taken::Nothing);
        }
        self.looked_at += next - from;
        tables.write(sync, |batch| {
            if from == 1 {
                // What happens from now on is told by events.
                for partition in source.partitions(0) {
                    let end = source.reach(partition).end;
                    batch.set_checkpoint(partition.stream, end)?;
                }
            }
            for number in from..next {
                let new = advance(source, number, None, Changed::State);
                batch.replace(number, None, new.as_ref())?;
            }
            let is_done = next >= end;
            batch.set_fact(Fact::Build, if is_done { 0 } else { next })?;
            Ok::<_, Failure>(Taken::Some)
        })
    }

    fn follow(
        &mut self,
        tables: &Tables,
        source: &impl Source,
        sync: Sync,
        watched: &mut Watched<'_>,
    ) -> Result<Taken, Failure> {
        for partition in source.partitions(self.partitions.len()) {
            let next = tables.checkpoint(partition.stream)?;
            self.partitions.push((partition, next));
        }
        let mut dirty: BTreeMap<u64, Changed> = BTreeMap::new();
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
            let mut note = |number, changed| {
                let known = dirty.entry(number).or_insert(changed);
                *known = changed.max(*known);
            };
            let next = source.events(*partition, *from, left, &mut note)?;
            left = left.saturating_sub((next - from) as usize);
            if next > *from {
                moved.push((index, next));
            }
        }
        if moved.is_empty() {
            return Ok(Taken::Nothing);
        }
        tables.write(sync, |batch| {
            for (number, changed) in &dirty {
                look(batch, source, *number, *changed, watched)?;
            }
            for (index, next) in &moved {
                batch.set_checkpoint(self.partitions[*index].0.stream, *next)?;
            }
            Ok::<_, Failure>(())
        })?;
        self.looked_at += dirty.len() as u64;
        for (index, next) in moved {
            self.partitions[index].1 = next;
        }
        Ok(Taken::Some)
    }
}

/// Looks at a conversation.
fn look(
    batch: &mut Batch<'_>,
    source: &impl Source,
    number: u64,
    changed: Changed,
    watched: &mut Watched<'_>,
) -> Result<(), Damage> {
    let old = batch.entry(number)?;
    let new = advance(source, number, old.as_ref(), changed);
    batch.replace(number, old.as_ref(), new.as_ref())?;
    if !watched.scopes.is_empty() && old != new {
        let told = everybody(old.as_ref(), new.as_ref());
        let told = told.into_iter().filter(|it| watched.scopes.contains(it));
        watched.changed.extend(told.map(|scope| (scope, number)));
    }
    Ok(())
}
