//! Disk counters of a node at two moments.

use std::path::Path;

use super::node::Node;
use crate::measurement::Storage;
use crate::process;

/// Counters of a node so far.
pub struct DiskCounters {
    syncs: Option<u64>,
    blocks: Option<u64>,
    written_bytes: Option<u64>,
}

impl DiskCounters {
    /// Reads the counters of a node whose data is at `disk`.
    #[must_use]
    pub fn of(node: &Node, disk: &Path) -> Self {
        Self {
            syncs: node.metric("telpher_journal_syncs_total"),
            blocks: node.metric("telpher_journal_blocks_total"),
            written_bytes: process::written_bytes(disk),
        }
    }

    /// Returns the increase since `before`; `None` if the node did not report its syncs.
    #[must_use]
    pub fn since(&self, before: &Self, payload_bytes: u64) -> Option<Storage> {
        let risen = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Some(Storage {
            syncs: risen(self.syncs, before.syncs)?,
            blocks: risen(self.blocks, before.blocks),
            written_bytes: risen(self.written_bytes, before.written_bytes),
            payload_bytes,
            sync_p50_ns: None,
        })
    }
}
