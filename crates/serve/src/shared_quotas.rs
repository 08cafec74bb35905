//! Connects the quotas of a node to a shared Redis, if one is configured.

use std::sync::Arc;
use std::time::Duration;

use config::Config;
use node::Node;
use outbound::redis::{Options, Redis};
use quota_service::SharedStore;

use console::{Exit, Failure};

/// Time between two rounds of maintenance of leases.
const INTERVAL: Duration = Duration::from_millis(50);

/// The store is probed once in this number of rounds.
const ROUNDS_PER_PROBE: u64 = 20;

/// Maximum time that the end of a node waits until its leases are returned.
const RETURN_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the configured Redis, which may be unreachable at the start; `None` if none is
/// configured.
pub(super) fn store(config: &Config) -> Result<Option<SharedStore>, Failure> {
    let options = &config.quota_store;
    let Some(urls) = &options.redis else {
        return Ok(None);
    };
    let redis = Redis::new(Options {
        urls: urls.secrets(),
        certificate: options.certificate.clone(),
        deadline: options.deadline,
        waiting_max: options.waiting_max as usize,
        nodes: options.nodes,
    });
    let redis = redis.map_err(|error| Failure::new(Exit::Usage, error))?;
    Ok(Some(SharedStore {
        store: Arc::new(redis),
        nodes: options.nodes,
    }))
}

/// Maintains leases and debts for ever; returns at once without a store.
pub(super) async fn tend(node: Node) {
    let Some(store) = node.quotas().store() else {
        return;
    };
    // The first probe reports the state of the store before the first take.
    let _ = store.probe().await;
    for round in 1_u64.. {
        node.quotas().tend_store().await;
        if round.is_multiple_of(ROUNDS_PER_PROBE) || !store.view().is_connected {
            // Without takes, only a probe detects that the store is unreachable or reachable again.
            let _ = store.probe().await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns the leases to the store.
pub(super) async fn leave(node: &Node) {
    let quotas = node.quotas();
    match tokio::time::timeout(RETURN_TIMEOUT, quotas.leave_store()).await {
        Ok(Ok(())) => {}
        Ok(Err(away)) => {
            tracing::warn!(
                reason = away.reason,
                "the store is unreachable; debts to it are lost"
            );
        }
        Err(_) => tracing::warn!("the leases could not be returned to the store in time"),
    }
}
