//! Disk activity of a run.

use serde::{Deserialize, Serialize};

/// Disk activity during a window, as far as it was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// Syncs that messages waited for.
    pub syncs: u64,
    /// Blocks of the write-ahead log, including those without a record.
    pub blocks: Option<u64>,
    /// Bytes written to the device by all processes, including background filing and merging.
    pub written_bytes: Option<u64>,
    /// Bytes of all message payloads.
    pub payload_bytes: u64,
    /// Median duration of a sync.
    pub sync_p50_ns: Option<u64>,
}
