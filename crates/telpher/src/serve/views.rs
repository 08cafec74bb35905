//! The views of conversations: kept in the data directory, and looked after while the node serves.

use std::time::Duration;

use node::Handle;
use node::config::Config;
use node::views::{Options, Place};

/// Where they lie in the data directory.
const DIRECTORY: &str = "views";

/// How they are kept.
pub(super) fn options(config: &Config) -> Options {
    let views = &config.views;
    Options {
        place: Place::Directory(config.data.dir.join(DIRECTORY)),
        cache_size: views.cache_size.as_usize(),
        sync_interval: views.sync_interval,
        watchers_max: views.watchers_max as usize,
        labels: edge::labels,
    }
}

/// Has them catch up every `interval`, for ever.
pub(super) async fn tend(node: Handle, interval: Duration) {
    loop {
        let tended = node.clone();
        // They read from disk: not on a thread that serves.
        let tending = tokio::task::spawn_blocking(move || tend_all(&tended));
        if tending.await.is_err() {
            tracing::error!("looking after the views of conversations ended early");
        }
        tokio::time::sleep(interval).await;
    }
}

fn tend_all(node: &Handle) {
    let Some(views) = node.views() else {
        return;
    };
    loop {
        match views.tend() {
            Ok(true) => {}
            Ok(false) => return,
            Err(refusal) => {
                tracing::warn!(reason = refusal.message, "the views are not up to date");
                return;
            }
        }
    }
}
