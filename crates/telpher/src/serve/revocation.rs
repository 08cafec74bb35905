//! Sends those away whose token was revoked while they were connected.
//!
//! Another process changes the tokens, so somebody has to look: only while there is a connection that
//! a token has let in. Whoever came before the first token was made had none that could be revoked.

use std::sync::Arc;
use std::time::Duration;

use model::ErrorCode;
use node::{Counter, Facts, Handle};

use super::gate::TokenGate;

/// How often the tokens are read: a connection outlives its token by less than a second.
const INTERVAL: Duration = Duration::from_millis(500);

/// Enforces revocations for ever.
pub(super) async fn enforce(gate: Arc<TokenGate>, node: Handle) {
    let mut enforced = gate.refresh();
    let mut is_settled = true;
    loop {
        if !node.is_any_client(|client| client.token.is_some()) {
            gate.admission().await;
        }
        tokio::time::sleep(INTERVAL).await;
        let changes = gate.refresh();
        if changes == enforced && is_settled {
            continue;
        }
        dismiss(&gate, &node);
        // Once more after the next pause: somebody may have been let in by the tokens of before, and
        // been connected only behind our look at who is.
        is_settled = changes == enforced;
        enforced = changes;
    }
}

fn dismiss(gate: &TokenGate, node: &Handle) {
    let reason = |client: &Facts| {
        let token = client.token.as_ref()?;
        if gate.knows(token) {
            return None;
        }
        node.counters().count(Counter::Unauthenticated);
        Some(format!("the token `{}` was revoked", token.name))
    };
    let count = node.dismiss(ErrorCode::Unauthenticated, reason);
    if count > 0 {
        tracing::info!(connections = count, "closed: their tokens were revoked");
    }
}
