//! The filer: schedules filing, merging and other background work, and commits the results.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::census::Census;
use super::erasures::{EraseBacklog, Erasures};
use super::job::{self, FilingJob, Placement};
use super::memory::SegmentMemory;
use super::merge::MergeJob;
use super::pace::Pace;
use super::plan::{self, Candidate, Purpose};
use super::retained::SegmentUses;
use super::retries::{Retries, Task};
use super::round::Round;
use super::{FilingError, Line, SealedSegment};
use crate::ShardId;
use crate::disk::reserve::Reserve;
use crate::disk::spares::Spares;
use crate::disk::{Disk, sync_names};
use crate::extent::{self, Extent, ExtentSet, Identity, RetainedSegments};
use crate::manifest::Manifest;
use crate::segment;

/// Bytes copied per step.
const STEP_SIZE: u64 = 1 << 20;

/// Limit on sealed segments that wait. Above it no spare is made, so that appends slow down.
const WAITING_MAX: usize = 4;

/// Spares to prepare ahead once the line has filled a segment (before that, one), and the number
/// above which files are removed.
const SPARES_MIN: usize = 2;
const SPARES_MAX: usize = 3;

/// Merges in progress at most. The smallest one proceeds first, so that large ones never delay it.
const MERGING_MAX: usize = 16;

/// Milliseconds until the pace of zeroing is checked again.
const PAUSE_MS: u64 = 2;

/// Milliseconds between retries while the disk is full or the line is not ready.
const RETRY_MS: u64 = 1_000;

/// Options of the filer.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time limit for an erase to remove its bytes from the disk, in milliseconds.
    pub erase_within_ms: u64,
    /// Bytes of disk space to reserve for a full disk.
    pub reserve_size: u64,
    /// Smallest mean size of the pieces of a segment, in bytes, with which they are not copied.
    pub piece_size_min: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            erase_within_ms: 24 * 3_600_000,
            reserve_size: 16 << 20,
            piece_size_min: 8 << 10,
        }
    }
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Some work was done; there may be more.
    Worked,
    /// There is no work until the line seals a segment, streams are trimmed, or time passes.
    Idle,
    /// There is work, but no disk space for it.
    Full,
    /// The filer has stopped permanently.
    Failed,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments filed.
    pub segments: u64,
    /// Bytes of the extents that filing wrote.
    pub filed_bytes: u64,
    /// Merges completed.
    pub merges: u64,
    /// Bytes of the extents that merges wrote.
    pub merged_bytes: u64,
}

/// The background worker of a journal. See [`filing`](crate::filing).
#[derive(Debug)]
pub struct Filer {
    disk: Arc<dyn Disk>,
    options: Options,
    spares: Arc<Spares>,
    erasures: Arc<Erasures>,
    reserve: Reserve,
    manifest: Manifest,
    extents: Arc<ExtentSet>,
    filing: Option<FilingJob>,
    memory: SegmentMemory,
    merging: Vec<MergeJob>,
    census: Census,
    round: Option<Round>,
    full: Option<FullDisk>,
    /// Every due merge has begun.
    is_planned: bool,
    /// The last step merged, so filing comes next.
    is_filing_next: bool,
    pace: Pace,
    totals: Totals,
    /// Files that no manifest names any more.
    leftovers: VecDeque<Leftover>,
    retries: Retries,
    /// Time of the current step.
    now_ms: u64,
    failure: Option<FilingError>,
}

/// Files to recycle or remove.
#[derive(Debug)]
enum Leftover {
    Segment(SealedSegment),
    /// Extents, and the sequences of segments to which no extent refers any more.
    Extents(Vec<Identity>, Vec<u64>),
}

/// State of a full disk.
#[derive(Clone, Copy, Debug)]
struct FullDisk {
    retry_ms: u64,
    /// Filing, which needs most space, waits until other work has freed some.
    is_filing_late: bool,
}

impl Filer {
    /// Creates the filer of a journal with this manifest and these extents. Removes extents that
    /// the manifest does not name.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        manifest: Manifest,
        extents: Arc<ExtentSet>,
        spares: Arc<Spares>,
        erasures: Arc<Erasures>,
    ) -> io::Result<Filer> {
        let is_named = |path: &String| manifest.extents().flatten().any(|one| one.path() == *path);
        for name in disk.list(extent::DIRECTORY)? {
            let path = format!("{}/{name}", extent::DIRECTORY);
            if !is_named(&path) {
                disk.remove(&path)?;
            }
        }
        let reserve = Reserve::open(disk.clone(), options.reserve_size)?;
        Ok(Filer {
            disk,
            options,
            spares,
            erasures,
            reserve,
            manifest,
            extents,
            filing: None,
            memory: SegmentMemory::default(),
            merging: Vec::new(),
            is_planned: false,
            census: Census::default(),
            round: None,
            full: None,
            is_filing_next: false,
            pace: Pace::default(),
            totals: Totals::default(),
            leftovers: VecDeque::new(),
            retries: Retries::default(),
            now_ms: 0,
            failure: None,
        })
    }

    /// Does one bounded piece of work. `now_ms` must never decrease.
    pub fn step(&mut self, line: &dyn Line, now_ms: u64) -> Step {
        if self.failure.is_some() {
            return Step::Failed;
        }
        self.now_ms = now_ms;
        let failed = match self.work(line, now_ms) {
            Ok(step) => return step,
            Err(error) if error.is_full() => match self.make_room(line, now_ms) {
                Ok(()) => return Step::Full,
                Err(error) => error,
            },
            Err(error) => error,
        };
        if !failed.is_transient() {
            return self.fail(failed);
        }
        self.retries.fail(Task::Tidying, now_ms, &failed);
        match self.full {
            Some(_) => Step::Full,
            None => Step::Idle,
        }
    }

    /// Runs some work of a task, unless the task pauses after a failure. A transient failure makes
    /// it pause; a full disk and damage are returned as errors.
    fn attempt(
        &mut self,
        task: Task,
        work: impl FnOnce(&mut Self) -> Result<bool, FilingError>,
    ) -> Result<bool, FilingError> {
        if !self.retries.is_due(task, self.now_ms) {
            return Ok(false);
        }
        match work(self) {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.retries.clear(task);
                Ok(false)
            }
            Err(error) if error.is_transient() && !error.is_full() => {
                self.retries.fail(task, self.now_ms, &error);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the error of work that has failed and is retried.
    pub fn retry_reason(&self) -> Option<&str> {
        self.retries.reason()
    }

    /// Returns when to step again after an idle step, unless something happens earlier; `None` if
    /// there is nothing to wait for.
    pub fn due_ms(&self, line: &dyn Line, now_ms: u64) -> Option<u64> {
        let is_waiting = self.full.is_some() || self.round.is_some() || line.sealed_count() > 0;
        let retry_ms = is_waiting.then_some(now_ms + RETRY_MS);
        let zero_ms = self.spares.zeroed().map(|_| now_ms + PAUSE_MS);
        let erase_ms = match self.round {
            Some(_) => None,
            None => self.erasures.pending().map(|pending| {
                // An overdue erase is not durable yet; look again later.
                let due_ms = self.erase_due_ms(pending);
                if due_ms > now_ms {
                    due_ms
                } else {
                    now_ms + RETRY_MS
                }
            }),
        };
        let census_ms = self.census.due_ms(line, &self.extents);
        let due_ms = retry_ms.into_iter().chain(zero_ms).chain(erase_ms);
        let due_ms = due_ms.chain(census_ms).chain(self.memory.due_ms());
        due_ms.chain(self.retries.due_ms()).min()
    }

    /// Returns the erases whose bytes have not all left the disk.
    pub fn erase_pending(&self) -> Option<EraseBacklog> {
        self.erasures.pending()
    }

    /// Returns the error that stopped the filer.
    pub fn failure(&self) -> Option<&FilingError> {
        self.failure.as_ref()
    }

    /// Returns the current extents.
    pub fn extents(&self) -> &Arc<ExtentSet> {
        &self.extents
    }

    /// Returns the bytes of trimmed records in extents, as far as counted.
    pub fn dead_bytes(&self) -> u64 {
        let numbers = self.extents.iter().map(|extent| extent.identity().number);
        numbers.map(|number| self.census.count(number).dead).sum()
    }

    /// Returns counters since the start.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn work(&mut self, line: &dyn Line, now_ms: u64) -> Result<Step, FilingError> {
        self.census.call_if_due(line, &self.extents, now_ms);
        self.erase(line, now_ms);
        self.pace.update(line.active_size(), now_ms);
        self.memory.free_if_due(now_ms);
        self.attempt(Task::Clearing, Self::clear)?;
        let worked = if self.full.is_some() {
            self.work_without_room(line, now_ms)?
        } else {
            self.attempt(Task::Feeding, |it| it.feed(line))?
                || self.attempt(Task::Tidying, |it| it.zero_for_erase())?
                || self.file_or_merge(line)?
                || self.attempt(Task::Counting, |it| it.count(line))?
                || self.attempt(Task::Tidying, |it| it.tidy(line))?
        };
        match (worked, self.full) {
            (true, _) => Ok(Step::Worked),
            (false, Some(_)) => Ok(Step::Full),
            (false, None) => Ok(Step::Idle),
        }
    }

    /// Returns when to begin an erase. Half of its time limit is for the work itself.
    fn erase_due_ms(&self, backlog: EraseBacklog) -> u64 {
        backlog
            .oldest_ms
            .saturating_add(self.options.erase_within_ms / 2)
    }

    /// Begins or continues an erase round.
    fn erase(&mut self, line: &dyn Line, now_ms: u64) {
        if self.round.is_none() {
            let due = |pending| self.erase_due_ms(pending) <= now_ms;
            if self.erasures.pending().is_some_and(due) {
                self.round = Round::begin(line, &self.erasures, &self.spares);
            }
        }
        // Files that are to be removed or recycled may have bytes to erase.
        if let Some(round) = self.round.as_mut().filter(|_| self.leftovers.is_empty()) {
            let (census, filed) = (&mut self.census, self.manifest.filed);
            if round.advance(
                line,
                filed,
                &self.extents,
                census,
                &self.erasures,
                &self.spares,
            ) {
                self.round = None;
            }
        }
    }

    /// Makes a spare for a line that has none, unless the line is far ahead of filing. In bulk, spares
    /// are used up faster than they are zeroed.
    fn feed(&mut self, line: &dyn Line) -> Result<bool, FilingError> {
        let is_in_bulk = line.is_in_bulk();
        let wanted = if is_in_bulk { SPARES_MIN } else { 1 };
        if self.spares.ready() >= wanted || line.sealed_count() > WAITING_MAX {
            return Ok(false);
        }
        if is_in_bulk && self.spares.dirty() == 0 {
            self.spares.allocate()?;
            return Ok(true);
        }
        if self.spares.ready() > 0 {
            return Ok(false);
        }
        if self.spares.dirty() == 0 {
            self.spares.begin()?;
        }
        self.zero()
    }

    /// Zeroes a part of the next spare, unless that is far enough for now.
    fn zero(&mut self) -> Result<bool, FilingError> {
        let is_ahead = self
            .spares
            .zeroed()
            .is_some_and(|zeroed| self.pace.is_ahead(zeroed));
        Ok(!is_ahead && self.spares.zero()?)
    }

    fn zero_for_erase(&mut self) -> Result<bool, FilingError> {
        let is_wanted = self.round.as_ref().is_some_and(Round::is_zeroing);
        Ok(is_wanted && self.spares.zero()?)
    }

    /// Alternates between filing and merging, unless merging is far behind.
    fn file_or_merge(&mut self, line: &dyn Line) -> Result<bool, FilingError> {
        let merge = |it: &mut Self| it.merge(line, Purpose::Order);
        let merges_first = !self.is_filing_next || self.is_behind();
        if merges_first && self.attempt(Task::Merging, merge)? {
            self.is_filing_next = true;
            return Ok(true);
        }
        self.is_filing_next = false;
        Ok(
            self.attempt(Task::Filing, |it| it.file(line))?
                || self.attempt(Task::Merging, merge)?,
        )
    }

    fn count(&mut self, line: &dyn Line) -> Result<bool, FilingError> {
        let targets = self.round.as_ref().map(Round::targets);
        let counted = self.census.step(line, &self.extents, targets)?;
        self.is_planned &= !counted;
        Ok(counted)
    }

    /// Does work that is not urgent: the reserve and further spares.
    fn tidy(&mut self, line: &dyn Line) -> Result<bool, FilingError> {
        if !self.reserve.is_held() {
            self.reserve.hold()?;
            return Ok(true);
        }
        if self.spares.dirty() > 0 {
            return self.zero();
        }
        let wanted = if self.totals.segments > 0 {
            SPARES_MIN
        } else {
            1
        };
        let is_short = self.spares.ready() < wanted && line.sealed_count() <= WAITING_MAX;
        if is_short {
            self.spares.begin()?;
        }
        Ok(is_short)
    }

    /// Frees disk space by dropping dead bytes. When there is enough again, ends the disk-full
    /// state.
    fn work_without_room(&mut self, line: &dyn Line, now_ms: u64) -> Result<bool, FilingError> {
        let is_filing_late = self.full.is_some_and(|full| full.is_filing_late);
        if (!is_filing_late && self.attempt(Task::Filing, |it| it.file(line))?)
            || self.attempt(Task::Counting, |it| it.count(line))?
            || self.attempt(Task::Merging, |it| it.merge(line, Purpose::Room))?
        {
            return Ok(true);
        }
        let Some(full) = self.full.as_mut().filter(|full| full.retry_ms <= now_ms) else {
            return Ok(false);
        };
        full.retry_ms = now_ms + RETRY_MS;
        if std::mem::take(&mut full.is_filing_late) {
            return Ok(true);
        }
        if self.spares.ready() == 0 {
            self.spares.prepare()?;
        }
        self.reserve.hold()?;
        self.full = None;
        self.is_planned = false;
        line.set_disk_full(false);
        Ok(true)
    }

    /// Enters the disk-full state: aborts merges, and frees the reserve and spares.
    fn make_room(&mut self, line: &dyn Line, now_ms: u64) -> Result<(), FilingError> {
        line.set_disk_full(true);
        for merging in self.merging.drain(..) {
            job::abandon(&*self.disk, &[merging.identity()]);
        }
        self.is_planned = false;
        let is_filing_late = self.full.is_some() && self.filing.is_none();
        self.full = Some(FullDisk {
            retry_ms: now_ms + RETRY_MS,
            is_filing_late,
        });
        self.reserve.release()?;
        self.spares.shrink(1)?;
        Ok(())
    }

    fn fail(&mut self, error: FilingError) -> Step {
        self.failure = Some(error);
        Step::Failed
    }

    /// Continues with the oldest sealed segment. Returns false if there is none.
    fn file(&mut self, line: &dyn Line) -> Result<bool, FilingError> {
        let mut filing = match self.filing.take() {
            Some(filing) => filing,
            None => match line.sealed() {
                Some(sealed) => {
                    let generation = self.census.generation();
                    let mut memory = std::mem::take(&mut self.memory);
                    let placement = self.placement(&sealed);
                    let filed = self.manifest.filed;
                    let now_ms = self.now_ms;
                    let begun = FilingJob::begin(
                        sealed,
                        filed,
                        generation,
                        &mut memory,
                        line,
                        placement,
                        now_ms,
                    );
                    self.memory = memory;
                    begun?
                }
                None => return Ok(false),
            },
        };
        let advanced = filing.advance(&*self.disk, line, &mut self.manifest, STEP_SIZE);
        match advanced {
            Ok(false) => self.filing = Some(filing),
            Ok(true) => self.commit_filing(line, filing)?,
            Err(error) => {
                filing.abandon(&*self.disk);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Decides whether a segment may stay where it is. While an erase is carried out, everything is
    /// copied, so that the file is zeroed with the others.
    fn placement(&self, sealed: &SealedSegment) -> Placement<'_> {
        let piece_size_min = self.options.piece_size_min;
        Placement {
            piece_size_min: self.round.is_none().then_some(piece_size_min),
            is_stale: self.spares.is_stale(&sealed.segment.file),
            erasures: &self.erasures,
        }
    }

    fn commit_filing(&mut self, line: &dyn Line, filing: FilingJob) -> Result<(), FilingError> {
        let mut manifest = self.manifest.clone();
        filing.update_manifest(&mut manifest);
        let mut segments = RetainedSegments::default();
        segments.insert(&filing.sealed.segment);
        let prepared = job::publish(&*self.disk, filing.extents(), segments)
            .and_then(|extents| Ok((manifest.prepare(&*self.disk)?, extents)));
        let extents = match prepared {
            Ok(((), extents)) => extents,
            Err(error) => {
                filing.abandon(&*self.disk);
                return Err(error);
            }
        };
        Manifest::commit(&*self.disk).map_err(FilingError::Unconfirmed)?;
        let mut set = ExtentSet::clone(&self.extents);
        for extent in extents {
            let Identity { shard, number, .. } = *extent.identity();
            self.totals.filed_bytes += extent.size();
            match extent.segment() {
                Some(_) => self.census.add(),
                None => self.census.replace(&[], number, filing.generation),
            }
            set = set.with(shard, &[], extent);
        }
        self.totals.segments += 1;
        self.switch(line, set, manifest);
        self.retries.clear(Task::Filing);
        let is_in_place = filing.is_in_place();
        let sealed = filing.into_segment(&mut self.memory, self.now_ms);
        match is_in_place {
            true => self.spares.part_with(&sealed.segment.file),
            false => self.leftovers.push_back(Leftover::Segment(sealed)),
        }
        self.attempt(Task::Clearing, Self::clear).map(drop)
    }

    /// Recycles or removes files of completed work. Returns false if there are none left.
    fn clear(&mut self) -> Result<bool, FilingError> {
        let Some(leftover) = self.leftovers.pop_front() else {
            return Ok(false);
        };
        let cleared = match &leftover {
            Leftover::Segment(sealed) => self.give_back(sealed),
            Leftover::Extents(gone, segments) => self.remove(gone, segments),
        };
        let Err(error) = cleared else {
            return Ok(!self.leftovers.is_empty());
        };
        match &leftover {
            // The file was renamed, and only the name is not durable yet: harmless.
            Leftover::Segment(sealed) if self.spares.holds(&sealed.segment.file) => {}
            _ => self.leftovers.push_front(leftover),
        }
        // Wrapped, so that a full disk here does not abort merges.
        Err(FilingError::Io(io::Error::other(error)))
    }

    /// Recycles the file of a filed segment as a spare, or removes it if there are enough, or if a
    /// reader holds it: what it has located there must not change.
    fn give_back(&self, sealed: &SealedSegment) -> io::Result<()> {
        let path = segment::path(sealed.segment.header.sequence);
        let has_enough = match self.full {
            Some(_) => self.spares.ready() > 0,
            None => self.spares.ready() + self.spares.dirty() >= SPARES_MAX,
        };
        let file = &sealed.segment.file;
        // The segment is not open any more, so no further reader finds it.
        let own = 1 + usize::from(self.spares.is_stale(file));
        let is_held = Arc::strong_count(file) > own;
        if is_held || has_enough || sealed.segment.header.size != self.spares.size() {
            return self.spares.discard(&path, file);
        }
        self.spares
            .give_back(path, file.clone(), sealed.is_inherited)
    }

    /// Continues with the smallest merge. Returns false if there is none.
    fn merge(&mut self, line: &dyn Line, least: Purpose) -> Result<bool, FilingError> {
        self.plan(least)?;
        let sizes = self
            .merging
            .iter()
            .enumerate()
            .map(|(place, merging)| (merging.size, place));
        let Some((_, place)) = sizes.min() else {
            return Ok(false);
        };
        match self.merging[place].advance(line, STEP_SIZE) {
            Ok(false) => {}
            Ok(true) => {
                let merging = self.merging.swap_remove(place);
                self.commit_merge(line, merging)?;
            }
            Err(error) => {
                let merging = self.merging.swap_remove(place);
                job::abandon(&*self.disk, &[merging.identity()]);
                self.is_planned = false;
                return Err(error);
            }
        }
        Ok(true)
    }

    fn commit_merge(&mut self, line: &dyn Line, merging: MergeJob) -> Result<(), FilingError> {
        let (identity, generation) = (merging.identity(), merging.generation);
        let gone: Vec<Identity> = merging.inputs().map(|extent| *extent.identity()).collect();
        let numbers: Vec<u64> = gone.iter().map(|extent| extent.number).collect();
        let mut manifest = self.manifest.clone();
        if let Some(shard) = manifest.shards.get_mut(usize::from(identity.shard.0)) {
            let first = shard
                .extents
                .iter()
                .position(|extent| extent.number == numbers[0]);
            shard
                .extents
                .retain(|extent| !numbers.contains(&extent.number));
            shard
                .extents
                .insert(first.unwrap_or(shard.extents.len()), identity);
        }
        let prepared = merging
            .finish()
            .and_then(|()| job::publish(&*self.disk, &[identity], RetainedSegments::default()))
            .and_then(|extents| Ok((manifest.prepare(&*self.disk)?, extents)));
        let extents = match prepared {
            Ok(((), extents)) => extents,
            Err(error) => {
                job::abandon(&*self.disk, &[identity]);
                self.is_planned = false;
                return Err(error);
            }
        };
        Manifest::commit(&*self.disk).map_err(FilingError::Unconfirmed)?;
        let mut set = ExtentSet::clone(&self.extents);
        for extent in extents {
            self.totals.merged_bytes += extent.size();
            self.census.replace(&numbers, identity.number, generation);
            set = set.with(identity.shard, &numbers, extent);
        }
        self.totals.merges += 1;
        let segments = self.extents.segments();
        self.switch(line, set, manifest);
        let left = self.extents.segments();
        let unused = segments.difference(&left).copied().collect();
        if let Some(full) = &mut self.full {
            full.is_filing_late = false;
        }
        self.retries.clear(Task::Merging);
        self.leftovers.push_back(Leftover::Extents(gone, unused));
        self.attempt(Task::Clearing, Self::clear).map(drop)
    }

    /// Removes extents, and segments to which they referred. Such a segment is not recycled: a reader
    /// may hold it, and a backup may have a link to its file.
    fn remove(&self, gone: &[Identity], segments: &[u64]) -> io::Result<()> {
        let extents = gone.iter().map(Identity::path);
        for path in extents.chain(segments.iter().copied().map(segment::path)) {
            match self.disk.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if !segments.is_empty() {
            sync_names(&*self.disk, segment::LINE_DIR)?;
        }
        sync_names(&*self.disk, extent::DIRECTORY)
    }

    /// Switches to the new extents and manifest.
    fn switch(&mut self, line: &dyn Line, set: ExtentSet, manifest: Manifest) {
        self.extents = Arc::new(set);
        self.manifest = manifest;
        self.is_planned = false;
        line.publish(&self.extents, &self.manifest);
    }

    /// Begins all due merges whose purpose is at least as important as `least`.
    fn plan(&mut self, least: Purpose) -> Result<(), FilingError> {
        if std::mem::replace(&mut self.is_planned, true) {
            return Ok(());
        }
        let uses = SegmentUses::count(&self.extents, &self.census);
        for shard in 0..self.manifest.shards.len() {
            let shard = ShardId(shard as u16);
            while self.merging.len() < MERGING_MAX {
                let candidates = self.candidates(shard, &uses);
                let Some((purpose, range)) = plan::next(&candidates) else {
                    break;
                };
                if purpose > least {
                    break;
                }
                let number = self.manifest.extent_next;
                self.manifest.extent_next += 1;
                let extents = &self.extents.shard(shard)[range];
                let generation = self.census.generation();
                match MergeJob::begin(&*self.disk, extents, number, generation) {
                    Ok(merging) => self.merging.push(merging),
                    Err(error) => {
                        self.is_planned = false;
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn is_behind(&self) -> bool {
        let shards = 0..self.manifest.shards.len();
        shards
            .map(|shard| self.candidates(ShardId(shard as u16), &SegmentUses::default()))
            .any(|all| plan::is_behind(&all))
    }

    /// Describes the extents of a shard to the plan.
    fn candidates(&self, shard: ShardId, uses: &SegmentUses) -> Vec<Candidate> {
        let is_busy = |extent: &Arc<Extent>| {
            let mut inputs = self.merging.iter().flat_map(MergeJob::inputs);
            inputs.any(|input| Arc::ptr_eq(input, extent))
        };
        let candidate = |extent: &Arc<Extent>| {
            let count = self.census.count(extent.identity().number);
            let candidate = Candidate {
                size: extent.data_size(),
                bytes: extent.bytes(),
                streams: extent.streams(),
                dead: count.dead,
                is_unerased: count.is_unerased,
                is_busy: is_busy(extent),
                is_in_place: extent.segment().is_some(),
                is_broken_up: false,
            };
            // A segment is removed as a whole.
            match uses.of(extent) {
                Some(used) => Candidate {
                    bytes: used.bytes,
                    dead: used.dead,
                    is_unerased: used.is_unerased,
                    is_broken_up: used.is_broken_up,
                    ..candidate
                },
                None => candidate,
            }
        };
        self.extents.shard(shard).iter().map(candidate).collect()
    }
}
