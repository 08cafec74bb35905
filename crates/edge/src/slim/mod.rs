//! The SLIM door: applications on `slim-bindings`, unchanged (`docs/slim.md`).
//!
//! One connection, one task. It reads what has arrived, hands each message to the
//! `Exchange`, which puts copies into the queues of receivers, and writes what others have put into
//! its own. gRPC is a prefix of five bytes and a status at the end, so the door speaks HTTP/2
//! itself: a codec in a server's framework would have to end the stream at a message that is too large,
//! and three tasks would pass on what one can. Clients that cannot speak HTTP/2 speak WebSocket, on the
//! same port: it is framed otherwise, and the same `Party` takes what it brings.
//!
//! The exchange has a table of its own: names here are hashes, and any number of applications may
//! hold one instance. Connections are the node's like all others: counted, limited, shown, drained and
//! dismissed with them.

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

use exchange::Exchange;
pub use jwt::{Jwt, JwtKeyError};
pub use listener::Listeners;
pub(crate) use metrics::encode_metrics;
use refusals::Refusals;
pub use slim::{Act, Rules, Who};

use crate::gate::Gate;

/// What the door accepts and how long it waits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Largest message. Above 4 MiB it is delivered to WebSockets only: over gRPC, SLIM's library ends its
    /// stream at a larger one.
    pub message_size_max: u32,
    /// Bytes queued for a client before copies to it are dropped; twice that of answers to
    /// what it asks, and it is given up.
    pub queue_size_max: usize,
    /// Subscriptions of one connection.
    pub subscriptions_max: usize,
    /// How long a client may take to negotiate its link, and to read why it is sent away.
    pub negotiation_timeout: Duration,
    /// Silence after which the door pings; after two of them a client is dead.
    pub keepalive: Duration,
    /// JWTs that are taken beside the node's tokens. Where some are, nobody comes in without either.
    pub jwt: Option<Arc<Jwt>>,
    /// Who may subscribe and send to what.
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

/// The SLIM door of one node. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    node: node::Handle,
    gate: Arc<dyn Gate>,
    options: Arc<Options>,
    exchange: Arc<Exchange>,
    refusals: Arc<Refusals>,
}

impl Door {
    /// A door to `node`.
    pub fn new(node: node::Handle, gate: Arc<dyn Gate>, options: Options) -> Self {
        let exchange = Arc::new(Exchange::new());
        node.show_names_of(exchange.clone());
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

    /// Subscriptions that clients hold.
    pub fn subscription_count(&self) -> usize {
        node::ports::Names::subscription_count(&*self.exchange)
    }
}
