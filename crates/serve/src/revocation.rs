//! Closes connections whose token was revoked or changed.
//!
//! Requests and streams of the HTTP listener hold the revoked pass and end by themselves. A client
//! that connected before the first token was created has no token that could be revoked.

use std::sync::Arc;
use std::time::Duration;

use messaging::Facts;
use model::ErrorCode;
use node::Node;
use platform::Counter;

use super::gate::TokenGate;

/// Pause before the second check, which covers connections that the old tokens admitted during the
/// first one.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// Enforces revocations for ever.
pub(super) async fn enforce(gate: Arc<TokenGate>, node: Node) {
    let mut changes = gate.changes();
    // The gate owns the sender, so this does not fail while the gate exists.
    while changes.changed().await.is_ok() {
        dismiss(&gate, &node);
        tokio::time::sleep(SECOND_LOOK).await;
        dismiss(&gate, &node);
    }
}

fn dismiss(gate: &TokenGate, node: &Node) {
    let reason = |client: &Facts| {
        let token = client.token.as_ref()?;
        if gate.knows(token) {
            return None;
        }
        node.counters().count(Counter::Unauthenticated);
        Some(format!("the token `{}` was revoked or changed", token.name))
    };
    let count = node.messaging().dismiss(ErrorCode::Unauthenticated, reason);
    if count > 0 {
        tracing::info!(
            connections = count,
            "closed connections with revoked tokens"
        );
    }
}
