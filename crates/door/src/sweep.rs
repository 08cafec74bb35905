//! Background work of a node: expires deadlines while there are any.

use std::future::poll_fn;
use std::time::Duration;

/// The interval of sweeps while calls are open.
const INTERVAL: Duration = Duration::from_millis(100);

/// The interval of sweeps of an idle node, whose stored data expires too.
const REST: Duration = Duration::from_secs(10);

/// Sweeps `node` forever. It costs almost nothing while no call is open.
pub async fn sweep(node: node::Node) {
    loop {
        let is_any = node.sweep();
        log_warnings(&node);
        if !is_any {
            // Both results are a reason to sweep.
            let needed = poll_fn(|cx| node.poll_sweep_needed(cx));
            let _ = tokio::time::timeout(REST, needed).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Logs failures of the background work on topics.
fn log_warnings(node: &node::Node) {
    let Some(topics) = node.topics() else {
        return;
    };
    for warning in topics.take_warnings() {
        tracing::warn!("{warning}");
    }
}
