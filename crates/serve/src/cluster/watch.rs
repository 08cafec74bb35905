//! Log lines about the other members: which are kept out, are behind, or have other clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::{ClockStatus, Node, OutdatedError};
use journal::ShardId;

/// Interval of looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Difference of two clocks from which on it is reported, in milliseconds.
const SKEW_MS: u64 = 500;

/// Logs changes until the node ends.
pub(super) async fn watch(node: Arc<Node>) {
    let mut kept_out = BTreeMap::new();
    let mut behind = BTreeSet::new();
    let mut clocks = ClockLog::default();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let refused = node.outdated_members();
        log_refused(&kept_out, &refused);
        kept_out = refused;
        let now = voters_behind(&node);
        log_behind(&behind, &now);
        behind = now;
        clocks.log(&node.clocks());
    }
}

fn log_refused(known: &BTreeMap<u64, OutdatedError>, refused: &BTreeMap<u64, OutdatedError>) {
    for (id, error) in refused {
        if known.get(id) != Some(error) {
            tracing::error!(
                id,
                %error,
                "a member is kept out: it has an old copy of its data, or its disk has lost some; \
                 remove it (telpher cluster remove ID) and let it join with an empty directory"
            );
        }
    }
}

/// Returns the voters that do not answer or are behind; none unless this node leads.
fn voters_behind(node: &Node) -> BTreeSet<u64> {
    let status = node.status(ShardId(0));
    let in_sync = status.in_sync(node.id());
    let voters = status.voters.into_iter();
    voters.filter(|id| !in_sync.contains(id)).collect()
}

fn log_behind(known: &BTreeSet<u64>, behind: &BTreeSet<u64>) {
    for id in behind.difference(known) {
        tracing::warn!(id, "a member does not answer or is behind");
    }
    for id in known.difference(behind) {
        tracing::info!(id, "a member has caught up, or another one leads");
    }
}

/// What was logged about clocks.
#[derive(Default)]
struct ClockLog {
    is_off: bool,
    skewed: BTreeSet<u64>,
}

impl ClockLog {
    fn log(&mut self, status: &ClockStatus) {
        match (status.off_ms, self.is_off) {
            (Some(ahead_ms), false) => tracing::error!(
                ahead_ms,
                "the clock of this node is more than 10 s off the median of the members, so it does \
                 not lead; set its clock"
            ),
            (None, true) => tracing::info!("the clock of this node is right again"),
            _ => {}
        }
        self.is_off = status.off_ms.is_some();
        for (id, ahead_ms, error_ms) in &status.members {
            let is_skewed = ahead_ms.unsigned_abs() >= SKEW_MS + error_ms;
            if is_skewed && self.skewed.insert(*id) {
                tracing::warn!(
                    id,
                    ahead_ms,
                    "the clock of a member differs from this node's"
                );
            }
            // One that is measured at the limit is not reported again and again.
            if ahead_ms.unsigned_abs() < SKEW_MS / 2 {
                self.skewed.remove(id);
            }
        }
    }
}
