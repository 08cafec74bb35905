//! Watches the storage and the sockets of a node: logs changes, limits the number of sockets to the
//! descriptors that the journal leaves, and reports a failure of the journal.

use std::time::Duration;

use net::SocketBudget;
use node::Node;
use store::{Health, StorageEvent, StorageState, StorageWatch};
use tokio::sync::oneshot;

use super::descriptors::Grant;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Watches for ever. `failed` receives the reason of a failure of the journal.
pub(super) async fn watch(
    node: Node,
    budget: SocketBudget,
    grant: Grant,
    failed: oneshot::Sender<String>,
) {
    let mut failed = Some(failed);
    let mut watch = StorageWatch::default();
    loop {
        let health = node.health();
        for event in health.map_or_else(Vec::new, |it| it.changes(&mut watch)) {
            log(&event);
            if let StorageEvent::StateChanged {
                state: StorageState::Failed,
                reason,
            } = event
                && let Some(failed) = failed.take()
            {
                // Without a receiver the node continues.
                let _ = failed.send(reason.unwrap_or_default());
            }
        }
        if let Some(storage) = health.map(Health::view) {
            budget.set_limit(grant.sockets(storage.extent_files));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn log(event: &StorageEvent) {
    match event {
        StorageEvent::StateChanged { state, reason } => {
            let reason = reason.as_deref().unwrap_or("");
            match state {
                StorageState::Serving => tracing::info!("the journal accepts writes again"),
                StorageState::FilingRetrying => tracing::warn!(
                    reason,
                    "compaction of the write-ahead log failed and is retried; writes continue while segments are free"
                ),
                StorageState::DiskFull => {
                    tracing::error!("the disk is full: writes are refused until space is freed")
                }
                StorageState::FilingFailed => tracing::error!(
                    reason,
                    "compaction of the write-ahead log has failed; writes are refused when no segment is free"
                ),
                StorageState::Failed => {
                    tracing::error!(reason, "the journal has failed: all writes are refused");
                }
            }
        }
        StorageEvent::Starved => {
            tracing::warn!(
                "writes wait for a free segment: compaction of the write-ahead log is too slow"
            );
        }
        StorageEvent::Fed => tracing::info!("writes continue: a segment is free"),
        StorageEvent::ClockDoubted(true) => tracing::warn!(
            "the wall clock jumped forward: expiry is paused until the jump is confirmed"
        ),
        StorageEvent::ClockDoubted(false) => tracing::info!("the wall clock is trusted again"),
    }
}
