//! Steps of the wall clock, which budgets follow.

use std::time::Duration;

use node::Handle;

/// How often the wall clock is compared with the node's own.
const INTERVAL: Duration = Duration::from_secs(1);

/// Has budgets follow the wall clock, for ever.
pub(super) async fn follow(node: Handle) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Some(step) = node.quotas().follow_clock() {
            let direction = if step.is_back { "back" } else { "forward" };
            let size_ms = u64::try_from(step.size.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(
                size_ms,
                direction,
                "the wall clock was stepped: budgets follow the new time"
            );
        }
    }
}
