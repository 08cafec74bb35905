//! Makes the budgets of quotas follow steps of the wall clock.

use std::time::Duration;

use node::Node;

/// Time between two comparisons of the wall clock with the node's monotonic clock.
const INTERVAL: Duration = Duration::from_secs(1);

/// Adjusts budgets to steps of the wall clock, for ever.
pub(super) async fn follow(node: Node) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Some(step) = node.quotas().follow_clock() {
            let direction = if step.is_back { "back" } else { "forward" };
            let size_ms = u64::try_from(step.size.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(
                size_ms,
                direction,
                "the wall clock was stepped; budgets follow the new time"
            );
        }
    }
}
