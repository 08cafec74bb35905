//! The native listener: every operation, in frames (`docs/reference/protocol.md`).

mod answers;
mod appended;
mod conversation;
mod deferred;
mod dispatch;
mod errors;
mod extracts;
mod fatal;
mod followers;
mod handshake;
mod listener;
mod outlet;
mod partition;
mod quota;
mod requests;
mod routes;
mod session;
mod spans;
mod stream;
mod timing;
mod topic;

use std::sync::Arc;
use std::time::Duration;

use door::Gate;
use net::Stream;

pub use listener::{accept_inproc, accept_tcp, accept_unix};
use wire::Window;

/// The limits and timeouts of the native listener. The node's own limits bound a client's open
/// requests, and the node enforces them.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The largest payload, in bytes.
    pub frame_size_max: u32,
    /// The silence after which the listener pings. A client that stays silent for about two and a
    /// half times as long is considered dead.
    pub keepalive: Duration,
    /// The time that a client may take for its HELLO.
    pub handshake_timeout: Duration,
    /// The number of bytes queued for a client above which messages to it are refused; at four
    /// times as much the connection is closed.
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

/// The native listener of one node. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    node: node::Node,
    gate: Arc<dyn Gate>,
    options: Options,
}

impl Door {
    /// Returns a listener for `node`.
    pub fn new(node: node::Node, gate: Arc<dyn Gate>, options: Options) -> Self {
        Self {
            node,
            gate,
            options,
        }
    }

    /// Returns the window that a client is granted.
    fn window(&self) -> Window {
        let limits = self.node.messaging().limits();
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

    /// Serves the node's own agent, which may use names under `telpher/` and needs no token.
    pub async fn serve_system(&self, stream: Stream) {
        self.serve_as(stream, Origin::System).await;
    }

    async fn serve_as(&self, stream: Stream, origin: Origin) {
        let remote = stream.peer.clone();
        // Boxed, so that its buffers are freed and an idle connection does not hold them.
        match Box::pin(handshake::run(self, stream, origin)).await {
            Ok(session) => session.run().await,
            Err(handshake::Failed::Silent) => {}
            Err(handshake::Failed::Refused { message }) => {
                tracing::info!(%remote, reason = %message, "connection refused");
            }
        }
    }
}

/// The origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Network,
    System,
}
