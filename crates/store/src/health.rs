//! The health and the statistics of a node's storage, for monitoring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::{Health as JournalHealth, HealthChanges, Journal, SyncTimes};
use platform::Platform;

use crate::store::Store;

/// Time after which appends that wait for a free segment make the node unready, in nanoseconds.
/// Compaction frees a segment in a fraction of it unless the disk stalls.
const STARVED_NS_MAX: u64 = 2_000_000_000;

/// The health of a node's storage.
pub struct Health {
    platform: Arc<Platform>,
    store: Arc<Store>,
    /// The durations of syncs, if they are measured.
    sync_times: Option<Arc<SyncTimes>>,
    /// The time since which appends wait for a free segment, in nanoseconds; 0 if none wait.
    starved_since_ns: AtomicU64,
}

/// The health of the journal and its statistics since the node started.
#[derive(Clone, Debug)]
pub struct StorageView {
    /// The state of the journal.
    pub state: StorageState,
    /// The reason of a state other than serving, for display.
    pub reason: Option<String>,
    /// Number of changes to each state since the start.
    pub changes: HealthChanges,
    /// True if appends wait because no segment is free.
    pub is_starved: bool,
    /// Number of free segments.
    pub spare_segments: usize,
    /// Number of new names refused because their namespace has too many.
    pub names_refused: u64,
    /// Number of syncs of the write-ahead log.
    pub syncs: u64,
    /// Number of blocks, including those without records.
    pub blocks: u64,
    /// Number of records.
    pub records: u64,
    /// Bytes of blocks.
    pub bytes: u64,
    /// Bytes waiting to be written.
    pub queued_bytes: u64,
    /// Number of sealed segments waiting to be compacted.
    pub waiting_segments: usize,
    /// Bytes not compacted yet: in sealed segments and in the current one.
    pub unfiled_bytes: u64,
    /// Number of compacted segments.
    pub filed_segments: u64,
    /// Bytes of the extents written from compacted segments.
    pub filed_bytes: u64,
    /// Number of completed merges.
    pub merges: u64,
    /// Bytes of the extents written by merges.
    pub merged_bytes: u64,
    /// Number of extents.
    pub extents: usize,
    /// Number of files that are open for the extents.
    pub extent_files: usize,
    /// Compacted segments whose records were not copied: extents refer to them.
    pub retained_segments: usize,
    /// Bytes of extents, and of the records to which they refer.
    pub extent_bytes: u64,
    /// Bytes in extents that are no longer readable, as far as they were counted.
    pub dead_bytes: u64,
    /// Durations of syncs, if measured.
    pub sync_times: Option<SyncTimesView>,
}

impl StorageView {
    /// Returns the state of a journal without a store. `sync_times` are the durations of its syncs,
    /// if they are measured.
    pub fn of(journal: &Journal, sync_times: Option<&SyncTimes>) -> Self {
        let (stats, filing) = (journal.stats(), journal.filing());
        let (state, reason) = state(journal.health());
        StorageView {
            state,
            reason,
            changes: journal.health_changes(),
            is_starved: journal.is_starved(),
            spare_segments: journal.spare_segments(),
            names_refused: 0,
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
            extent_files: filing.open_files,
            retained_segments: filing.retained_segments,
            extent_bytes: filing.extent_bytes,
            dead_bytes: filing.dead_bytes,
            sync_times: sync_times.map(view),
        }
    }
}

/// The state of the journal, which determines whether appends are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageState {
    /// Appends are accepted.
    Serving,
    /// Appends are accepted while segments are free; compaction fails and is retried.
    FilingRetrying,
    /// Appends are accepted while segments are free; compaction has stopped until the next start.
    FilingFailed,
    /// Appends are refused until the disk has room.
    DiskFull,
    /// The journal failed; appends are refused until a restart.
    Failed,
}

/// A histogram of the durations of syncs.
#[derive(Clone, Debug)]
pub struct SyncTimesView {
    /// Counts of syncs by upper bound in nanoseconds. The last entry has no bound.
    pub counts: Vec<(Option<u64>, u64)>,
    /// Sum of all durations in nanoseconds.
    pub sum_ns: u64,
}

impl StorageState {
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Serving,
        Self::FilingRetrying,
        Self::FilingFailed,
        Self::DiskFull,
        Self::Failed,
    ];

    /// Returns the state's name in metrics.
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

impl Health {
    /// Returns the health of a store. `sync_times` are the durations of syncs, if they are measured.
    pub fn new(
        platform: Arc<Platform>,
        store: Arc<Store>,
        sync_times: Option<Arc<SyncTimes>>,
    ) -> Self {
        Self {
            platform,
            store,
            sync_times,
            starved_since_ns: AtomicU64::new(0),
        }
    }

    /// Returns the state of the storage.
    pub fn view(&self) -> StorageView {
        StorageView {
            names_refused: self.store.names_refused(),
            ..StorageView::of(&self.store.journal, self.sync_times.as_deref())
        }
    }

    /// Returns the reason why nothing can be stored, if there is one.
    pub fn unhealthy(&self) -> Option<String> {
        match self.store.journal.health() {
            JournalHealth::Serving | JournalHealth::FilingRetrying { .. } => None,
            JournalHealth::DiskFull => Some("the disk is full".to_owned()),
            JournalHealth::FilingFailed { reason } => {
                Some(format!("compaction has failed: {reason}"))
            }
            JournalHealth::Failed { reason } => Some(format!("the journal has failed: {reason}")),
        }
    }

    /// Returns the reason why the storage is not ready, if it is not.
    pub fn unready(&self) -> Option<String> {
        let journal = &self.store.journal;
        let starved_ns = self.starved_since_ns.load(Ordering::Relaxed);
        let is_starved_long =
            starved_ns != 0 && self.platform.now_ns().saturating_sub(starved_ns) >= STARVED_NS_MAX;
        unready(journal, is_starved_long)
    }

    /// Returns the changes of the storage since the last call. Called several times a second by one
    /// task.
    pub fn changes(&self, watch: &mut StorageWatch) -> Vec<StorageEvent> {
        let journal = &self.store.journal;
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
        let now_ns = self.platform.now_ns();
        let since_ns = &self.starved_since_ns;
        match (journal.is_starved(), since_ns.load(Ordering::Relaxed)) {
            // 0 means that no append waits.
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
        let is_doubted = self.platform.is_clock_doubted();
        if is_doubted != watch.is_clock_doubted {
            watch.is_clock_doubted = is_doubted;
            events.push(StorageEvent::ClockDoubted(is_doubted));
        }
        events
    }
}

/// The state at the last call of [`Health::changes`].
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
    /// The journal has another state, or another reason for the same state. A further failure of a
    /// filing that is being retried is not an event.
    StateChanged {
        /// The current state.
        state: StorageState,
        /// The reason, for display.
        reason: Option<String>,
    },
    /// Appends have waited too long for a free segment.
    Starved,
    /// Appends have a free segment again.
    Fed,
    /// True: the wall clock stepped forward, so that nothing expires until the step is confirmed.
    /// False: it was confirmed or reverted.
    ClockDoubted(bool),
}

/// Returns the reason why appends cannot succeed.
fn unready(journal: &Journal, is_starved_long: bool) -> Option<String> {
    let is_starved = journal.is_starved();
    match journal.health() {
        JournalHealth::FilingFailed { reason } if is_starved || journal.spare_segments() == 0 => {
            Some(format!(
                "no journal segment is free, and compaction has failed: {reason}"
            ))
        }
        JournalHealth::FilingRetrying { reason } if is_starved => Some(format!(
            "no journal segment is free, and compaction is being retried: {reason}"
        )),
        JournalHealth::Serving
        | JournalHealth::FilingRetrying { .. }
        | JournalHealth::FilingFailed { .. } => {
            is_starved_long.then(|| "no journal segment is free: the disk stalls".to_owned())
        }
        JournalHealth::DiskFull => {
            Some("the disk is full: writes are refused until there is room".to_owned())
        }
        JournalHealth::Failed { reason } => Some(format!("the journal has failed: {reason}")),
    }
}

fn state(health: JournalHealth) -> (StorageState, Option<String>) {
    match health {
        JournalHealth::Serving => (StorageState::Serving, None),
        JournalHealth::FilingRetrying { reason } => (StorageState::FilingRetrying, Some(reason)),
        JournalHealth::DiskFull => (StorageState::DiskFull, None),
        JournalHealth::FilingFailed { reason } => (StorageState::FilingFailed, Some(reason)),
        JournalHealth::Failed { reason } => (StorageState::Failed, Some(reason)),
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
