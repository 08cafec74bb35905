//! How the storage under a node does, for whoever watches it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use journal::{Health, HealthChanges, Journal, SyncTimes};

use crate::handle::Handle;

/// Appends that wait for a free segment for this long make the node unready: filing frees one within
/// a fraction of it unless the disk stalls.
const STARVED_NS_MAX: u64 = 2_000_000_000;

/// What the journal has done since the node started, and how much there is.
#[derive(Clone, Debug)]
pub struct StorageView {
    /// Whether appends are taken.
    pub state: StorageState,
    /// Why not, or why not for long, for a person.
    pub reason: Option<String>,
    /// How often each state was entered since the start.
    pub changes: HealthChanges,
    /// Whether appends wait because no segment is free.
    pub is_starved: bool,
    /// Segments that are free.
    pub spare_segments: usize,
    /// New names refused because their namespace has too many.
    pub names_refused: u64,
    /// Syncs of the line.
    pub syncs: u64,
    /// Blocks, those that carry no record included.
    pub blocks: u64,
    /// Records.
    pub records: u64,
    /// Bytes of blocks.
    pub bytes: u64,
    /// Bytes that wait for the disk.
    pub queued_bytes: u64,
    /// Sealed segments that wait to be filed.
    pub waiting_segments: usize,
    /// Bytes that are not filed: what is in those and in the segment that is written.
    pub unfiled_bytes: u64,
    /// Segments that were filed.
    pub filed_segments: u64,
    /// Bytes of the extents that they became.
    pub filed_bytes: u64,
    /// Merges that were completed.
    pub merges: u64,
    /// Bytes of the extents that others were merged into.
    pub merged_bytes: u64,
    /// Extents that there are.
    pub extents: usize,
    /// Their bytes.
    pub extent_bytes: u64,
    /// Bytes in them that no reader sees any more, as far as they were counted.
    pub dead_bytes: u64,
    /// How long syncs took, when somebody measures it.
    pub sync_times: Option<SyncTimesView>,
}

/// Whether the journal takes appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageState {
    /// It does.
    Serving,
    /// It does while segments are free; filing fails and is tried again.
    FilingRetrying,
    /// It does while segments are free; filing has stopped until the next start.
    FilingFailed,
    /// It refuses them until there is room.
    DiskFull,
    /// It has failed for good.
    Failed,
}

/// Syncs by their length.
#[derive(Clone, Debug)]
pub struct SyncTimesView {
    /// How many took at most so many nanoseconds and more than the bound before; the last, without
    /// a bound, took longer than all.
    pub counts: Vec<(Option<u64>, u64)>,
    /// The nanoseconds of all.
    pub sum_ns: u64,
}

impl StorageState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Serving,
        Self::FilingRetrying,
        Self::FilingFailed,
        Self::DiskFull,
        Self::Failed,
    ];

    /// The state's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::FilingRetrying => "filing_retrying",
            Self::FilingFailed => "filing_failed",
            Self::DiskFull => "disk_full",
            Self::Failed => "failed",
        }
    }
}

impl Handle {
    /// How the storage does; `None` for a node that keeps nothing.
    pub fn storage(&self) -> Option<StorageView> {
        let store = self.inner.store.as_ref()?;
        let journal = &store.journal;
        let (stats, filing) = (journal.stats(), journal.filing());
        let (state, reason) = state(journal.health());
        Some(StorageView {
            state,
            reason,
            changes: journal.health_changes(),
            is_starved: journal.is_starved(),
            spare_segments: journal.spare_segments(),
            names_refused: store.names_refused.load(Ordering::Relaxed),
            syncs: stats.syncs,
            blocks: stats.blocks,
            records: stats.records,
            bytes: stats.bytes,
            queued_bytes: stats.queued_bytes,
            waiting_segments: filing.waiting,
            unfiled_bytes: filing.unfiled_bytes,
            filed_segments: filing.filed_segments,
            filed_bytes: filing.filed_bytes,
            merges: filing.merges,
            merged_bytes: filing.merged_bytes,
            extents: filing.extents,
            extent_bytes: filing.extent_bytes,
            dead_bytes: filing.dead_bytes,
            sync_times: self.inner.sync_times.get().map(|times| view(times)),
        })
    }

    /// The storage view shows these times of syncs from now on.
    pub fn show_sync_times(&self, times: Arc<SyncTimes>) {
        // Whoever comes second measures the same disk.
        let _ = self.inner.sync_times.set(times);
    }

    /// Why the node takes no work, if it does not.
    pub fn unready(&self) -> Option<String> {
        if self.is_draining() {
            let reason =
                "the node is draining: it finishes what is under way and takes nothing new";
            return Some(reason.to_owned());
        }
        let journal = &self.inner.store.as_ref()?.journal;
        let starved_ns = self.inner.starved_since_ns.load(Ordering::Relaxed);
        let is_starved_long = starved_ns != 0
            && self.inner.ports.clock.now_ns().saturating_sub(starved_ns) >= STARVED_NS_MAX;
        unready(journal, is_starved_long)
    }

    /// Looks at the storage and returns what has changed since the last look. Called several times a
    /// second by one task.
    pub fn look_at_storage(&self, watch: &mut StorageWatch) -> Vec<StorageEvent> {
        let Some(store) = &self.inner.store else {
            return Vec::new();
        };
        let journal = &store.journal;
        let mut events = Vec::new();
        let (state, reason) = state(journal.health());
        // Each try of filing may fail for another file.
        let is_retried_again = (watch.state, state)
            == (
                Some(StorageState::FilingRetrying),
                StorageState::FilingRetrying,
            );
        if !is_retried_again && (watch.state, &watch.reason) != (Some(state), &reason) {
            let is_first = watch.state.is_none() && state == StorageState::Serving;
            (watch.state, watch.reason) = (Some(state), reason.clone());
            if !is_first {
                events.push(StorageEvent::StateChanged { state, reason });
            }
        }
        let now_ns = self.inner.ports.clock.now_ns();
        let since_ns = &self.inner.starved_since_ns;
        match (journal.is_starved(), since_ns.load(Ordering::Relaxed)) {
            // 0 stands for a line that is not starved.
            (true, 0) => since_ns.store(now_ns.max(1), Ordering::Relaxed),
            (true, since_ns) if now_ns.saturating_sub(since_ns) >= STARVED_NS_MAX => {
                if !std::mem::replace(&mut watch.is_starved, true) {
                    events.push(StorageEvent::Starved);
                }
            }
            (false, _) => {
                since_ns.store(0, Ordering::Relaxed);
                if std::mem::take(&mut watch.is_starved) {
                    events.push(StorageEvent::Fed);
                }
            }
            (true, _) => {}
        }
        let is_doubted = self.is_clock_doubted();
        if is_doubted != watch.is_clock_doubted {
            watch.is_clock_doubted = is_doubted;
            events.push(StorageEvent::ClockDoubted(is_doubted));
        }
        events
    }
}

/// What the last look at the storage found.
#[derive(Debug, Default)]
pub struct StorageWatch {
    state: Option<StorageState>,
    reason: Option<String>,
    is_starved: bool,
    is_clock_doubted: bool,
}

/// A change of the storage, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageEvent {
    /// The journal is in another state, or in the same for another reason. Further failures of filing
    /// while it is tried again are no change.
    StateChanged {
        /// The state now.
        state: StorageState,
        /// Why, for a person.
        reason: Option<String>,
    },
    /// Appends have waited for a free segment for too long.
    Starved,
    /// Appends have a segment again.
    Fed,
    /// The wall clock stepped forward, so that nothing expires until the step is confirmed; or it is
    /// confirmed or taken back.
    ClockDoubted(bool),
}

/// Why appends cannot succeed.
fn unready(journal: &Journal, is_starved_long: bool) -> Option<String> {
    let is_starved = journal.is_starved();
    match journal.health() {
        Health::FilingFailed { reason } if is_starved || journal.spare_segments() == 0 => Some(
            format!("no journal segment is free, and filing has failed: {reason}"),
        ),
        Health::FilingRetrying { reason } if is_starved => Some(format!(
            "no journal segment is free, and filing is tried again: {reason}"
        )),
        Health::Serving | Health::FilingRetrying { .. } | Health::FilingFailed { .. } => {
            is_starved_long.then(|| "no journal segment is free: the disk stalls".to_owned())
        }
        Health::DiskFull => {
            Some("the disk is full: nothing is written until there is room".to_owned())
        }
        Health::Failed { reason } => Some(format!("the journal has failed: {reason}")),
    }
}

fn state(health: Health) -> (StorageState, Option<String>) {
    match health {
        Health::Serving => (StorageState::Serving, None),
        Health::FilingRetrying { reason } => (StorageState::FilingRetrying, Some(reason)),
        Health::DiskFull => (StorageState::DiskFull, None),
        Health::FilingFailed { reason } => (StorageState::FilingFailed, Some(reason)),
        Health::Failed { reason } => (StorageState::Failed, Some(reason)),
    }
}

fn view(times: &SyncTimes) -> SyncTimesView {
    let counts = times.counts();
    let bounds = SyncTimes::BOUNDS_NS.into_iter().map(Some).chain([None]);
    SyncTimesView {
        counts: bounds.zip(counts.counts).collect(),
        sum_ns: counts.sum_ns,
    }
}
