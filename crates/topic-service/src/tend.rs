//! Background work: trims streams of deleted topics, takes snapshots for fast starts, and applies
//! retention.

mod sweep;

/// The times of the next checks.
#[derive(Debug, Default)]
pub(super) struct Looks {
    partitions_ms: u64,
    expiry_ms: u64,
    groups_ms: u64,
    is_any: bool,
}
