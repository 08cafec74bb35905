//! How much memory a process had, moment by moment.

use serde::{Deserialize, Serialize};

/// The memory at one moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Milliseconds since the load began.
    pub at_ms: u64,
    /// Resident memory then.
    pub rss_bytes: u64,
}
