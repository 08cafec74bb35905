//! The SLIM listener: serves applications on `slim-bindings`, unchanged (`docs/slim.md`).
//!
//! Each connection has one task. It reads received bytes, passes each message to the `Exchange`,
//! which puts copies into the queues of receivers, and writes its own queue. gRPC adds only a
//! prefix of five bytes and a final status, so the listener speaks HTTP/2 itself: a server
//! framework's codec would end the stream at a message that is too large, and needs three tasks
//! where one is enough. Clients that cannot speak HTTP/2 use WebSocket, on the same port, with
//! other framing and the same `Party`.
//!
//! The exchange has its own table: names are hashes here, and any number of applications may hold
//! one instance. Connections are connections of the node like all others: counted, limited, listed,
//! drained and closed with them.

mod admission;
mod client;
mod exchange;
mod farewell;
mod io;
mod jwt;
mod listener;
mod lobby;
mod metrics;
mod outlet;
mod party;
mod pressure;
mod pulse;
mod refusals;
mod scope;
mod status;
mod stream;
mod transport;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

pub use exchange::Exchange;
pub use jwt::{Jwt, JwtKeyError};
pub use listener::Listeners;
pub(crate) use metrics::encode_metrics;
use refusals::Refusals;
pub use slim::{Act, Rules, Who};

use crate::gate::Gate;

/// The limits and timeouts of the SLIM listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest message, in bytes. Above 4 MiB it is delivered to WebSockets only: over gRPC,
    /// SLIM's library ends its stream at a larger one.
    pub message_size_max: u32,
    /// The number of bytes queued for a client above which copies to it are dropped; when twice as
    /// many are queued for its answers, its stream is ended.
    pub queue_size_max: usize,
    /// The number of subscriptions of one connection.
    pub subscriptions_max: usize,
    /// The time that a client may take to negotiate its link, and to read the reason for its end.
    pub negotiation_timeout: Duration,
    /// The silence after which the listener pings; after a second one the client is considered
    /// dead.
    pub keepalive: Duration,
    /// JWTs that are accepted in addition to the node's tokens. If this is set, every client needs
    /// one or the other.
    pub jwt: Option<Arc<Jwt>>,
    /// Rules for subscriptions and messages.
    pub rules: Rules,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            message_size_max: 4 << 20,
            queue_size_max: 16 << 20,
            subscriptions_max: model::limits::SUBSCRIPTIONS_PER_CONNECTION_MAX as usize,
            negotiation_timeout: Duration::from_secs(5),
            keepalive: Duration::from_secs(15),
            jwt: None,
            rules: Rules::default(),
        }
    }
}

/// The SLIM listener of one node. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    node: node::Node,
    gate: Arc<dyn Gate>,
    options: Arc<Options>,
    exchange: Arc<Exchange>,
    refusals: Arc<Refusals>,
}

impl Door {
    /// Returns a listener for `node` with that name table, which should be among the node's parts.
    pub fn new(
        node: node::Node,
        gate: Arc<dyn Gate>,
        exchange: Arc<Exchange>,
        options: Options,
    ) -> Self {
        Self {
            node,
            gate,
            options: Arc::new(options),
            exchange,
            refusals: Arc::default(),
        }
    }

    /// Serves one connection to its end.
    pub async fn serve(&self, stream: net::Stream) {
        transport::serve(self, stream).await;
    }

    /// Returns the number of the clients' subscriptions.
    pub fn subscription_count(&self) -> usize {
        node::ports::Names::subscription_count(&*self.exchange)
    }
}
