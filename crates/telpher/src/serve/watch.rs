//! Watches the storage and the sockets of a node: logs what changes, fits the number of sockets to
//! the descriptors that the journal needs, and reports a journal that has failed.

use std::time::Duration;

use net::SocketBudget;
use node::{Handle, SocketsView, StorageEvent, StorageState, StorageWatch};
use tokio::sync::oneshot;

use super::descriptors::Grant;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Watches for ever. `failed` receives the reason when the journal has failed.
pub(super) async fn watch(
    node: Handle,
    budget: SocketBudget,
    grant: Grant,
    failed: oneshot::Sender<String>,
) {
    let shown = budget.clone();
    node.show_sockets(move || SocketsView {
        open: shown.open(),
        limit: shown.limit(),
        refused: shown.refused(),
    });
    let mut failed = Some(failed);
    let mut watch = StorageWatch::default();
    loop {
        for event in node.look_at_storage(&mut watch) {
            log(&event);
            if let StorageEvent::StateChanged {
                state: StorageState::Failed,
                reason,
            } = event
                && let Some(failed) = failed.take()
            {
                // Where nobody waits for it, the node goes on.
                let _ = failed.send(reason.unwrap_or_default());
            }
        }
        if let Some(storage) = node.storage() {
            budget.set_limit(grant.sockets(storage.extents));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn log(event: &StorageEvent) {
    match event {
        StorageEvent::StateChanged { state, reason } => {
            let reason = reason.as_deref().unwrap_or("");
            match state {
                StorageState::Serving => tracing::info!("the journal takes writes again"),
                StorageState::FilingRetrying => tracing::warn!(
                    reason,
                    "filing of the journal failed and is tried again; writes go on while segments are free"
                ),
                StorageState::DiskFull => {
                    tracing::error!("the disk is full: writes are refused until there is room")
                }
                StorageState::FilingFailed => tracing::error!(
                    reason,
                    "filing of the journal has failed; writes end when no segment is free"
                ),
                StorageState::Failed => {
                    tracing::error!(
                        reason,
                        "the journal has failed: nothing is written any more"
                    );
                }
            }
        }
        StorageEvent::Starved => {
            tracing::warn!("writes wait: no journal segment is free, filing does not keep up");
        }
        StorageEvent::Fed => tracing::info!("writes go on: a journal segment is free"),
        StorageEvent::ClockDoubted(true) => tracing::warn!(
            "the wall clock stepped forward: nothing expires by it until the step is confirmed"
        ),
        StorageEvent::ClockDoubted(false) => tracing::info!("the wall clock is trusted again"),
    }
}
