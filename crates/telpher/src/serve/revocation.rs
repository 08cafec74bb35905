//! Ends connections whose token was revoked or changed while they were open.
//!
//! Requests and streams of the HTTP door hold the pass that was revoked, and end by themselves. A
//! client that came before the first token was made had none that could be revoked.

use std::sync::Arc;
use std::time::Duration;

use model::ErrorCode;
use node::{Counter, Facts, Handle};

use super::gate::TokenGate;

/// After this time a connection is open that was admitted by the tokens of before.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// Enforces revocations for ever.
pub(super) async fn enforce(gate: Arc<TokenGate>, node: Handle) {
    let mut changes = gate.changes();
    // The sender is the gate's.
    while changes.changed().await.is_ok() {
        dismiss(&gate, &node);
        tokio::time::sleep(SECOND_LOOK).await;
        dismiss(&gate, &node);
    }
}

fn dismiss(gate: &TokenGate, node: &Handle) {
    let reason = |client: &Facts| {
        let token = client.token.as_ref()?;
        if gate.knows(token) {
            return None;
        }
        node.counters().count(Counter::Unauthenticated);
        Some(format!("the token `{}` was revoked or changed", token.name))
    };
    let count = node.dismiss(ErrorCode::Unauthenticated, reason);
    if count > 0 {
        tracing::info!(connections = count, "closed: their tokens were revoked");
    }
}
