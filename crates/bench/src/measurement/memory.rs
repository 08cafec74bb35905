//! Memory of a process over time.

use serde::{Deserialize, Serialize};

/// Memory at one moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Milliseconds since the load began.
    pub at_ms: u64,
    /// Resident memory at that moment.
    pub rss_bytes: u64,
}
