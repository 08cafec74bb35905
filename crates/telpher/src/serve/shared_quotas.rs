//! Quotas that several nodes share in a Redis, when the configuration names one.

use std::sync::Arc;
use std::time::Duration;

use node::Handle;
use node::config::Config;
use outbound::redis::{Options, Redis};

use crate::failure::{Exit, Failure};

/// How often what is leased is looked after.
const INTERVAL: Duration = Duration::from_millis(50);

/// It is asked whether it is there every so many times.
const PROBED: u64 = 20;

/// How long the end of a node waits until what it has leased is given back.
const LEAVING: Duration = Duration::from_secs(1);

/// Has the node's quotas lie there. It need not be there yet.
pub(super) fn use_store(node: &Handle, config: &Config) -> Result<(), Failure> {
    let options = &config.quota_store;
    let Some(urls) = &options.redis else {
        return Ok(());
    };
    let redis = Redis::new(Options {
        urls: urls.secrets(),
        certificate: options.certificate.clone(),
        deadline: options.deadline,
        waiting_max: options.waiting_max as usize,
        nodes: options.nodes,
    });
    let redis = redis.map_err(|error| Failure::new(Exit::Usage, error))?;
    node.quotas().store_in(Arc::new(redis), options.nodes);
    Ok(())
}

/// Looks after what is leased and owed, for ever; without a store there is nothing to do.
pub(super) async fn tend(node: Handle) {
    let Some(store) = node.quotas().store() else {
        return;
    };
    // Whether it is there is told before anybody takes.
    let _ = store.probe().await;
    for round in 1_u64.. {
        node.quotas().tend_store().await;
        if round.is_multiple_of(PROBED) || !store.view().is_connected {
            // Who asks finds out that it is away, or there again, though nobody takes.
            let _ = store.probe().await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Gives back what is leased.
pub(super) async fn leave(node: &Handle) {
    let quotas = node.quotas();
    match tokio::time::timeout(LEAVING, quotas.leave_store()).await {
        Ok(Ok(())) => {}
        Ok(Err(away)) => {
            tracing::warn!(
                reason = away.reason,
                "what is owed to the store is forgotten"
            );
        }
        Err(_) => tracing::warn!("the store does not take back what is leased in time"),
    }
}
