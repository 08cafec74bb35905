//! Reports to the other members: what this node has on disk, so that it is recognised if it ever
//! comes back with less. The answers are measurements of their clocks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use crate::clock::Clocks;
use crate::group::Group;
use crate::link::Peers;

/// Interval of reports, and the time limit of an answer.
const INTERVAL: Duration = Duration::from_secs(1);

/// Interval of reports until the clocks of a quorum are known, because no reign begins before that.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Reports to all members of the first group until the node ends.
pub(crate) async fn report(groups: Arc<[Group]>, peers: Arc<Peers>, clocks: Arc<Clocks>, own: u64) {
    loop {
        let (membership, _) = groups[0].membership();
        let others = membership.nodes().filter(|(id, _)| **id != own);
        let reports = others.map(|(id, addresses)| {
            let (peers, clocks) = (&peers, &clocks);
            async move {
                let (sent_ms, begun) = (clocks.own_ms(), Instant::now());
                let reported = timeout(INTERVAL, peers.report(*id, &addresses.link));
                // A member that does not answer is reported to again.
                if let Ok(Ok(theirs_ms)) = reported.await {
                    clocks.note(*id, theirs_ms, sent_ms, begun.elapsed());
                }
            }
        });
        let next = Instant::now() + INTERVAL;
        let soon = Instant::now() + INTERVAL_MIN;
        let voters = voters(&groups[0]);
        let reported = join_all(reports);
        tokio::pin!(reported);
        // A member that does not answer must not delay the decision.
        loop {
            let is_over = timeout(INTERVAL_MIN, &mut reported).await.is_ok();
            let is_known = clocks.judge(own, &voters);
            if is_over {
                tokio::time::sleep_until(if is_known { next } else { soon }).await;
                break;
            }
        }
    }
}

/// Returns the voters of a group.
pub(crate) fn voters(group: &Group) -> BTreeSet<u64> {
    group.membership().0.voter_ids().collect()
}
