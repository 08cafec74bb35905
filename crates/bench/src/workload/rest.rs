//! The memory of a node that is left alone.

use std::thread;
use std::time::Duration;

use super::WorkloadError;
use super::node::Node;
use crate::clock::now_ns;
use crate::process::Memory;

/// Memory is at rest when it has not moved by more than this over [`CALM`].
const STIR_BYTES: u64 = 1 << 20;
const CALM: Duration = Duration::from_secs(1);

/// How long it may take to come to rest.
const LIMIT: Duration = Duration::from_secs(300);

/// Resident bytes of the node once they do not move any more.
pub(super) fn rss_bytes(node: &Node) -> Result<u64, WorkloadError> {
    let gone = || WorkloadError::Node("the node has ended while it was left alone".to_owned());
    let limit_ns = now_ns() + LIMIT.as_nanos() as u64;
    let mut before = Memory::of(node.pid()).ok_or_else(gone)?.rss_bytes;
    loop {
        thread::sleep(CALM);
        let now = Memory::of(node.pid()).ok_or_else(gone)?.rss_bytes;
        if now.abs_diff(before) <= STIR_BYTES || now_ns() > limit_ns {
            return Ok(now);
        }
        before = now;
    }
}
