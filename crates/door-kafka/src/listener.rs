//! The Kafka listener of a node: its options, and what its connections share.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use door::Gate;
use tokio::sync::Semaphore;
use topic_service::Topics;

use crate::secrets::Secrets;
use crate::users::Users;

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
    pub(crate) node: node::Node,
    pub(crate) topics: Topics,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) users: Arc<dyn Users>,
    pub(crate) options: Arc<Options>,
    pub(crate) secrets: Arc<Secrets>,
    /// Permits for password checks.
    pub(crate) password_checks: Arc<Semaphore>,
    /// Permits for decompression.
    pub(crate) unpackings: Arc<Semaphore>,
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
    pub(crate) fn asks_who_it_is(&self) -> bool {
        self.users.is_any() || self.gate.admit("").is_err()
    }
}
