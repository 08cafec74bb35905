//! Maintenance of the views of conversations.

use std::time::Duration;

use node::Node;

/// Updates the views every `interval`, for ever.
pub(super) async fn tend(node: Node, interval: Duration) {
    loop {
        let tended = node.clone();
        // An update reads from disk, so it must not run on a thread of connections.
        let tending = tokio::task::spawn_blocking(move || tend_all(&tended));
        if tending.await.is_err() {
            tracing::error!("the update of the views of conversations ended unexpectedly");
        }
        tokio::time::sleep(interval).await;
    }
}

fn tend_all(node: &Node) {
    let Some(views) = node.views() else {
        return;
    };
    loop {
        match views.tend() {
            Ok(true) => {}
            Ok(false) => return,
            Err(refusal) => {
                let reason = refusal.to_string();
                tracing::warn!(reason, "the views could not be updated");
                return;
            }
        }
    }
}
