//! The SLIM listener of a node: its options, and what its connections share.

use std::sync::Arc;
use std::time::Duration;

use door::Gate;
use slim::Rules;

use crate::exchange::Exchange;
use crate::jwt::Jwt;
use crate::refusals::Refusals;

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
    pub(crate) node: node::Node,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) options: Arc<Options>,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) refusals: Arc<Refusals>,
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

    /// Returns the number of the clients' subscriptions.
    pub fn subscription_count(&self) -> usize {
        messaging::Names::subscription_count(&*self.exchange)
    }
}
