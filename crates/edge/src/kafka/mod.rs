//! The Kafka door: topics, for any Kafka client (`docs/kafka.md`).
//!
//! A file for each API, as in the codec: what it is asked becomes a call of the node, what the node
//! says becomes an answer. Which APIs and versions there are stands in the codec's one table, from
//! which clients learn it: what is not in it is not answered.
//!
//! It does not know what a record is, and decides nothing about offsets, groups or transactions.

mod answers;
mod api;
mod client;
mod deadline;
mod dispatch;
mod errors;
mod inbox;
mod listener;
mod metrics;
mod outlet;
mod quota;
mod reply;
mod sasl;
mod scram;
mod secrets;
mod session;
mod stall;
mod users;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use listener::{Acceptor, Arrived, accept};
pub(crate) use metrics::encode as encode_metrics;
pub(crate) use users::SALT_SIZE;
pub use users::{Nobody, Users, credential};

use crate::gate::Gate;
use client::Client;
use node::topics::Topics;
use outlet::KafkaOutlet;
use secrets::Secrets;
use session::Session;
use tokio::sync::Semaphore;

/// What the Kafka door accepts and how long it waits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Largest frame.
    pub frame_size_max: usize,
    /// A connection on which nothing happens for so long is closed.
    pub idle_timeout: Duration,
    /// How long a client may take to say who it is, where it has to.
    pub handshake_timeout: Duration,
    /// Where clients are told to find the broker; none is where they have reached it.
    pub advertised: Option<Place>,
    /// Where topics lie, as tools are told.
    pub log_dir: String,
    /// Whether connections are encrypted, as tools are told.
    pub is_tls: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            frame_size_max: 100 << 20,
            idle_timeout: Duration::from_secs(600),
            handshake_timeout: Duration::from_secs(10),
            advertised: None,
            log_dir: "telpher-data".to_owned(),
            is_tls: false,
        }
    }
}

/// Passwords that are checked at the same time, at most; others wait.
const PASSWORD_CHECKS_MAX: usize = 2;

/// Batches of producers that are unpacked at the same time, at most; others wait. It is less than there
/// are threads for such work, so that reads from the disk go on.
const UNPACKINGS_MAX: usize = 2;

/// Where a broker is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A name or a number.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        Self {
            // As a client can use it: an IPv4 address is not dressed up as IPv6.
            host: address.ip().to_canonical().to_string(),
            port: address.port(),
        }
    }
}

/// The Kafka door of one node. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    node: node::Handle,
    topics: Topics,
    gate: Arc<dyn Gate>,
    users: Arc<dyn Users>,
    options: Arc<Options>,
    secrets: Arc<Secrets>,
    /// Passwords that may be checked at the same time.
    password_checks: Arc<Semaphore>,
    /// Batches that may be unpacked at the same time.
    unpackings: Arc<Semaphore>,
}

impl fmt::Debug for Door {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Door")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Door {
    /// A door to the topics of `node`.
    pub fn new(
        node: node::Handle,
        topics: Topics,
        gate: Arc<dyn Gate>,
        users: Arc<dyn Users>,
        options: Options,
    ) -> Self {
        Self {
            node,
            topics,
            gate,
            users,
            options: Arc::new(options),
            secrets: Arc::new(Secrets::new()),
            password_checks: Arc::new(Semaphore::new(PASSWORD_CHECKS_MAX)),
            unpackings: Arc::new(Semaphore::new(UNPACKINGS_MAX)),
        }
    }

    /// Whether a client has to say who it is before anything else.
    fn asks_who_it_is(&self) -> bool {
        self.users.is_any() || self.gate.admit("").is_err()
    }

    /// Serves one connection to its end.
    pub async fn serve(&self, arrived: Arrived) {
        let Arrived { stream, local } = arrived;
        let outlet = Arc::new(KafkaOutlet::new(stream.sink.clone()));
        let place = self.options.advertised.clone();
        let place = place.unwrap_or_else(|| Place::from(local));
        let client = match Client::new(self, place, stream.peer, outlet.clone()) {
            Ok(client) => client,
            Err(refusal) => {
                tracing::info!(%refusal, "kafka connection refused");
                return outlet.outbox.finish();
            }
        };
        let Options {
            handshake_timeout,
            idle_timeout,
            ..
        } = *self.options;
        let source = stream.source;
        // Boxed, so that a connection that idles keeps little.
        let session = Session::new(source, outlet, client, handshake_timeout, idle_timeout);
        Box::pin(session.run()).await;
    }
}
