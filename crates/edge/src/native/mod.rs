//! The native door: every operation, in frames (`docs/reference/protocol.md`).

mod conversation;
mod dispatch;
mod handshake;
mod listener;
mod outlet;
mod quota;
mod session;
mod topic;

use std::sync::Arc;
use std::time::Duration;

use net::Stream;

pub(crate) use listener::spawn_with;
pub use listener::{Acceptor, Spawn, accept_inproc, accept_tcp, accept_unix};
use wire::Window;

use crate::gate::Gate;

/// What the native door accepts and how long it waits. What it lets a client have in flight stands in
/// the node's limits: the node is who keeps to it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Largest payload.
    pub frame_size_max: u32,
    /// Silence after which the door pings; after two and a half times that a client is dead.
    pub keepalive: Duration,
    /// How long a client may take to introduce itself.
    pub handshake_timeout: Duration,
    /// Bytes queued for a client before messages to it are refused; four times that much, and
    /// the connection is given up.
    pub queue_size_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            frame_size_max: model::limits::FRAME_SIZE_MAX.as_u64() as u32,
            keepalive: Duration::from_secs(15),
            handshake_timeout: Duration::from_secs(5),
            queue_size_max: 16 << 20,
        }
    }
}

/// The native door of one node. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    node: node::Handle,
    gate: Arc<dyn Gate>,
    options: Options,
}

impl Door {
    /// A door to `node`.
    pub fn new(node: node::Handle, gate: Arc<dyn Gate>, options: Options) -> Self {
        Self {
            node,
            gate,
            options,
        }
    }

    /// What a client is granted.
    fn window(&self) -> Window {
        let limits = self.node.limits();
        Window {
            frame_size_max: self.options.frame_size_max,
            calls_max: limits.calls_max,
            credit_messages: limits.credit_messages,
            credit_bytes: limits.credit_bytes,
            keepalive_ms: self.options.keepalive.as_millis() as u32,
        }
    }

    /// Serves one connection to its end.
    pub async fn serve(&self, stream: Stream) {
        self.serve_as(stream, Origin::Network).await;
    }

    /// Serves the node's own agent, which may use the names of `telpher/` and needs no token.
    pub async fn serve_system(&self, stream: Stream) {
        self.serve_as(stream, Origin::System).await;
    }

    async fn serve_as(&self, stream: Stream, origin: Origin) {
        let remote = stream.peer.clone();
        // Boxed, so that its buffers go with it and a connection that idles does not keep them.
        match Box::pin(handshake::run(self, stream, origin)).await {
            Ok(session) => session.run().await,
            Err(handshake::Failed::Silent) => {}
            Err(handshake::Failed::Refused { message }) => {
                tracing::info!(%remote, reason = %message, "connection refused");
            }
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Network,
    System,
}
