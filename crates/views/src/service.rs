//! [`Views`]: the opened views and how they catch up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use conversation_service::Conversations;
use parking_lot::Mutex;
use platform::{Counter, Platform};
use store::Store;

use crate::catch_up::{BatchOutcome, BuildProgress, CatchUp, Failure, WatchedScopes};
use crate::damage::Damage;
use crate::error::ViewsError;
use crate::file;
use crate::journal::{FoundPartitions, Journaled};
use crate::options::Options;
use crate::tables::{Sync, Tables};
use crate::watchers::Watchers;

/// Maximum time that a query waits for the views to catch up, in nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Approximate maximum number of conversations updated without a sync. Until the next sync, the
/// pages that they replace stay in the file.
const UNSYNCED_MAX: u64 = 20_000;

/// The views of a node and their progress.
pub(super) struct ViewsState {
    pub(super) options: Options,
    pub(super) opened: Mutex<Option<OpenViews>>,
    found: Mutex<FoundPartitions>,
    pub(super) watchers: Watchers,
    /// True if the views were complete and usable at the last check.
    is_ready: AtomicBool,
    /// Number of events applied.
    taken: AtomicU64,
}

/// The progress of the views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewsProgress {
    /// True if the views were complete and usable at the last check.
    pub is_ready: bool,
    /// Number of durable events that are not applied yet.
    pub lag_events: u64,
}

pub(super) struct OpenViews {
    tables: Arc<Tables>,
    catch_up: CatchUp,
    /// The time of the last sync; `is_dirty` is true if anything was applied since.
    synced_ns: u64,
    is_dirty: bool,
}

/// The views of a node. Queries may read from disk: call them only on threads that may block.
#[derive(Clone)]
pub struct Views {
    pub(super) platform: Arc<Platform>,
    pub(super) store: Arc<Store>,
    pub(super) conversations: Conversations,
    pub(super) state: Arc<ViewsState>,
}

impl Views {
    /// Returns the views of conversations. They are opened by their first use.
    pub fn new(
        platform: Arc<Platform>,
        store: Arc<Store>,
        conversations: Conversations,
        options: Options,
    ) -> Self {
        let state = ViewsState {
            options,
            opened: Mutex::default(),
            found: Mutex::default(),
            watchers: Watchers::default(),
            is_ready: AtomicBool::new(false),
            taken: AtomicU64::new(0),
        };
        Self {
            platform,
            store,
            conversations,
            state: Arc::new(state),
        }
    }

    /// Applies a batch of events, or erases expired conversations. Returns true if there may be
    /// more. The shell calls it periodically, and again at once as long as it returns true.
    pub fn tend(&self) -> Result<bool, ViewsError> {
        match self.step(None)? {
            BatchOutcome::Applied => Ok(true),
            BatchOutcome::Nothing => self.expire(),
        }
    }

    /// Returns the progress, without reading from disk.
    pub fn progress(&self) -> ViewsProgress {
        let ends: u64 = self.source().ends().iter().sum();
        ViewsProgress {
            is_ready: self.state.is_ready.load(Ordering::Relaxed),
            lag_events: ends.saturating_sub(self.state.taken.load(Ordering::Relaxed)),
        }
    }

    /// Applies all events that are durable at the time of the call.
    pub(super) fn catch_up(&self) -> Result<Arc<Tables>, ViewsError> {
        let clock = &self.platform.ports.clock;
        let deadline = clock.now_ns().saturating_add(PATIENCE_NS);
        // Events that arrive meanwhile are left to the next query.
        let ends = self.source().ends();
        while self.step(Some(&ends))? == BatchOutcome::Applied {
            if clock.now_ns() > deadline {
                return Err(self.late());
            }
        }
        let tables = self.opened()?;
        match tables.1 {
            None => Ok(tables.0),
            Some(_) => Err(self.late()),
        }
    }

    /// Applies one batch, unless the partitions were applied up to `ends` already.
    pub(super) fn step(&self, ends: Option<&[u64]>) -> Result<BatchOutcome, ViewsError> {
        let mut opened = self.state.opened.lock();
        let scopes = self.state.watchers.scopes();
        let mut watched = WatchedScopes {
            scopes: &scopes,
            changed: Vec::new(),
        };
        let taken = self.step_opened(&mut opened, ends, &mut watched);
        let taken = taken.map_err(|failure| self.fail(&mut opened, &failure));
        self.note(opened.as_ref());
        drop(opened);
        self.state.watchers.notify(&watched.changed);
        taken
    }

    /// Publishes the progress.
    fn note(&self, opened: Option<&OpenViews>) {
        let (is_built, taken) = opened.map_or((false, 0), |it| it.catch_up.progress());
        self.state.is_ready.store(is_built, Ordering::Relaxed);
        self.state.taken.store(taken, Ordering::Relaxed);
    }

    fn step_opened(
        &self,
        opened: &mut Option<OpenViews>,
        ends: Option<&[u64]>,
        watched: &mut WatchedScopes<'_>,
    ) -> Result<BatchOutcome, Failure> {
        let now_ns = self.platform.now_ns();
        let opened = match opened {
            Some(opened) => opened,
            None => {
                let Options {
                    place, cache_size, ..
                } = &self.state.options;
                let tables = file::open(place, self.store.journal.id(), *cache_size)?;
                opened.insert(OpenViews {
                    tables: Arc::new(tables),
                    catch_up: CatchUp::default(),
                    synced_ns: now_ns,
                    is_dirty: false,
                })
            }
        };
        let OpenViews {
            tables, catch_up, ..
        } = opened;
        if ends.is_some_and(|ends| catch_up.has_reached(ends)) {
            return Ok(BatchOutcome::Nothing);
        }
        let interval_ns = self.state.options.sync_interval.as_nanos() as u64;
        let is_due = now_ns.saturating_sub(opened.synced_ns) >= interval_ns;
        let is_much = catch_up.looked_at >= UNSYNCED_MAX;
        let sync = match opened.is_dirty && (is_due || is_much) {
            true => Sync::Now,
            false => Sync::Later,
        };
        let before = catch_up.looked_at;
        let taken = catch_up.step(tables, &self.source(), sync, watched)?;
        let updated = catch_up.looked_at - before;
        self.platform.counters.add_to(Counter::ViewUpdates, updated);
        match (taken, sync) {
            (BatchOutcome::Nothing, Sync::Later) => {}
            (BatchOutcome::Applied, Sync::Later) => opened.is_dirty = true,
            (taken, Sync::Now) => {
                if taken == BatchOutcome::Nothing {
                    tables.write(Sync::Now, |_| Ok::<_, Damage>(()))?;
                }
                (opened.is_dirty, opened.synced_ns) = (false, now_ns);
                catch_up.looked_at = 0;
            }
        }
        Ok(taken)
    }

    /// Returns the open tables, and the progress of the build if they are not complete.
    pub(super) fn opened(&self) -> Result<(Arc<Tables>, Option<BuildProgress>), ViewsError> {
        let mut opened = self.state.opened.lock();
        let Some(OpenViews {
            tables, catch_up, ..
        }) = &*opened
        else {
            return Err(unavailable("the views are being opened"));
        };
        match catch_up.build_progress(tables) {
            Ok(progress) => Ok((tables.clone(), progress)),
            Err(damage) => Err(self.fail(&mut opened, &damage.into())),
        }
    }

    /// Returns the error for views that are not ready in time.
    pub(super) fn late(&self) -> ViewsError {
        match self.opened() {
            Ok((_, Some(BuildProgress { next, end }))) => unavailable(format!(
                "the views of conversations are being built: {next} of {end} streams processed"
            )),
            _ => unavailable("the views of conversations have not caught up yet"),
        }
    }

    /// Closes or removes views that cannot be used. The next query opens or rebuilds them.
    pub(super) fn fail(&self, opened: &mut Option<OpenViews>, failure: &Failure) -> ViewsError {
        self.platform.counters.count(Counter::ViewFailures);
        let is_lost = match failure {
            Failure::Lost => true,
            Failure::Damage(damage) => {
                *opened = None;
                damage.is_lasting()
            }
            Failure::Events(_) => false,
        };
        if is_lost {
            *opened = None;
            // A file that cannot be removed will be found damaged again.
            let _ = file::remove(&self.state.options.place);
        }
        unavailable(failure.to_string())
    }

    /// Returns the result of a read; on damage, closes the tables.
    pub(super) fn checked<R>(&self, read: Result<R, Damage>) -> Result<R, ViewsError> {
        read.map_err(|damage| self.fail(&mut self.state.opened.lock(), &damage.into()))
    }

    pub(super) fn source(&self) -> Journaled<'_> {
        Journaled {
            store: &self.store,
            labels: self.state.options.labels,
            found: &self.state.found,
        }
    }
}

fn unavailable(reason: impl Into<String>) -> ViewsError {
    ViewsError::Unavailable {
        reason: reason.into(),
    }
}
