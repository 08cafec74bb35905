//! The background work of a node: looking after deadlines, and only while there are any.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// How often deadlines are looked after while calls are under way.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often a node is looked after that rests: what it keeps expires all the same.
const REST: Duration = Duration::from_secs(10);

/// Sweeps `node` for ever; costs next to nothing while no call is under way.
pub async fn sweep(node: node::Handle) {
    let needed = Arc::new(Notify::new());
    let wake = needed.clone();
    node.on_sweep_needed(move || wake.notify_one());
    loop {
        let is_any = node.sweep();
        log_warnings(&node);
        if !is_any {
            // Either is a reason to sweep.
            let _ = tokio::time::timeout(REST, needed.notified()).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Logs what the background work on topics could not do.
fn log_warnings(node: &node::Handle) {
    let Some(topics) = node.topics() else {
        return;
    };
    for warning in topics.take_warnings() {
        tracing::warn!("{warning}");
    }
}
