//! The Kafka listener: serves topics to any Kafka client (`docs/kafka.md`).
//!
//! As in the codec, there is a file for each API: it turns requests into calls of the node, and
//! their results into answers. The codec's table lists the APIs and versions; clients learn them
//! from it, and others are not answered.
//!
//! It does not know the content of records, and decides nothing about offsets, groups or
//! transactions.

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

/// The limits and timeouts of the Kafka listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest frame, in bytes.
    pub frame_size_max: usize,
    /// An idle connection is closed after this time.
    pub idle_timeout: Duration,
    /// The time that a client may take to authenticate, where it has to.
    pub handshake_timeout: Duration,
    /// The address at which clients are told to find the broker; `None` is the address that they
    /// connected to.
    pub advertised: Option<BrokerAddress>,
    /// The log directory that tools are told.
    pub log_dir: String,
    /// True if connections are encrypted, as tools are told.
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

/// The number of passwords that are checked at the same time; others wait.
const PASSWORD_CHECKS_MAX: usize = 2;

/// The number of batches from producers that are decompressed at the same time; others wait. It is
/// less than the number of threads for such work, so that reads from the disk go on.
const UNPACKINGS_MAX: usize = 2;

/// The address of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerAddress {
    /// A host name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl From<SocketAddr> for BrokerAddress {
    fn from(address: SocketAddr) -> Self {
        Self {
            // Clients expect an IPv4 address as such, not in its IPv6 form.
            host: address.ip().to_canonical().to_string(),
            port: address.port(),
        }
    }
}

/// The Kafka listener of one node. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    node: node::Node,
    topics: Topics,
    gate: Arc<dyn Gate>,
    users: Arc<dyn Users>,
    options: Arc<Options>,
    secrets: Arc<Secrets>,
    /// Permits for password checks.
    password_checks: Arc<Semaphore>,
    /// Permits for decompression.
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
    /// Returns a listener for the topics of `node`.
    pub fn new(
        node: node::Node,
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

    /// Returns whether a client has to authenticate first.
    fn asks_who_it_is(&self) -> bool {
        self.users.is_any() || self.gate.admit("").is_err()
    }

    /// Serves one connection to its end.
    pub async fn serve(&self, arrived: Arrived) {
        let Arrived { stream, local } = arrived;
        let outlet = Arc::new(KafkaOutlet::new(stream.sink.clone()));
        let place = self.options.advertised.clone();
        let place = place.unwrap_or_else(|| BrokerAddress::from(local));
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
        // Boxed, so that an idle connection holds little memory.
        let session = Session::new(source, outlet, client, handshake_timeout, idle_timeout);
        Box::pin(session.run()).await;
    }
}
