//! Memory of an idle node.

use std::thread;
use std::time::Duration;

use bench::process::Memory;
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use meter::clock::now_ns;

/// Maximum change in bytes over [`CALM`] at which memory counts as settled.
const STIR_BYTES: u64 = 1 << 20;
const CALM: Duration = Duration::from_secs(1);

/// Maximum time to wait until memory settles.
const LIMIT: Duration = Duration::from_secs(300);

/// Returns the resident bytes of the node once they have settled.
pub(crate) fn rss_bytes(node: &Node) -> Result<u64, WorkloadError> {
    rss_bytes_within(node, LIMIT)
}

/// Like [`rss_bytes`], with a time limit.
pub(crate) fn rss_bytes_within(node: &Node, limit: Duration) -> Result<u64, WorkloadError> {
    let ended = || WorkloadError::Node("the node ended while it was idle".to_owned());
    let limit_ns = now_ns() + limit.as_nanos() as u64;
    let mut before = Memory::of(node.pid()).ok_or_else(ended)?.rss_bytes;
    loop {
        thread::sleep(CALM);
        let now = Memory::of(node.pid()).ok_or_else(ended)?.rss_bytes;
        if now.abs_diff(before) <= STIR_BYTES || now_ns() > limit_ns {
            return Ok(now);
        }
        before = now;
    }
}
