//! How the storage under a node does, for whoever watches it.

use std::sync::Arc;

use journal::{Health, SyncTimes};

use crate::handle::Handle;

/// What the journal has done since the node started, and how much there is.
#[derive(Clone, Debug)]
pub struct StorageView {
    /// Whether appends are taken.
    pub state: StorageState,
    /// Why not, or why not for long, for a person.
    pub reason: Option<String>,
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
    /// It does, and filing has stopped: the disk will fill up.
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
    pub const ALL: [Self; 4] = [
        Self::Serving,
        Self::FilingFailed,
        Self::DiskFull,
        Self::Failed,
    ];

    /// The state's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::FilingFailed => "filing_failed",
            Self::DiskFull => "disk_full",
            Self::Failed => "failed",
        }
    }
}

impl Handle {
    /// How the storage does; `None` for a node that keeps nothing.
    pub fn storage(&self) -> Option<StorageView> {
        let journal = &self.inner.store.as_ref()?.journal;
        let (stats, filing) = (journal.stats(), journal.filing());
        let (state, reason) = state(journal.health());
        Some(StorageView {
            state,
            reason,
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
        match journal.health() {
            Health::Serving | Health::FilingFailed { .. } => None,
            Health::DiskFull => {
                Some("the disk is full: nothing is written until there is room".to_owned())
            }
            Health::Failed { reason } => Some(format!("the journal has failed: {reason}")),
        }
    }
}

fn state(health: Health) -> (StorageState, Option<String>) {
    match health {
        Health::Serving => (StorageState::Serving, None),
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
