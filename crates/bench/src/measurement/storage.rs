//! What a run did to the disk, beside messages.

use serde::{Deserialize, Serialize};

/// What durable storage did during a window, as far as it was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// Syncs that messages waited for.
    pub syncs: u64,
    /// Blocks of the journal's line, those that carry no record included.
    pub blocks: Option<u64>,
    /// Bytes that the device was sent meanwhile, by everybody: filing and merging are in it.
    pub written_bytes: Option<u64>,
    /// Bytes of all payloads.
    pub payload_bytes: u64,
    /// Median length of a sync.
    pub sync_p50_ns: Option<u64>,
}
