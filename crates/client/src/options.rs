//! What a client can be told before it connects.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use model::{ByteSize, Name, limits};
use net::Address;
use wire::Window;

use crate::clock::Timeout;
use crate::{Caller, Client, ConnectError};

/// Opens a byte stream to an address, in place of a socket: see [`Builder::connector`].
pub type Connector = dyn Fn(&Address) -> Connecting + Send + Sync;

/// What a [`Connector`] returns.
pub type Connecting = Pin<Box<dyn Future<Output = std::io::Result<net::Stream>> + Send>>;

/// A call's time, unless it says otherwise.
const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Options {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) window: Window,
    pub(crate) requests_size_max: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) deadline: Timeout,
    pub(crate) pause_min: Duration,
    pub(crate) pause_max: Duration,
    pub(crate) seed: Option<u64>,
    pub(crate) connector: Option<Arc<Connector>>,
}

/// Prepares a [`Client`], from [`Client::builder`].
///
/// ```no_run
/// # async fn example() -> Result<(), telpher_client::ConnectError> {
/// let client = telpher_client::Client::builder()
///     .name("acme/search/crawler")?
///     .token("secret")
///     .in_flight_max(1024)
///     .connect("tcp://127.0.0.1:7400")
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct Builder {
    token: String,
    name: String,
    authorities: Option<PathBuf>,
    frame_size_max: u32,
    credit_messages: u32,
    credit_bytes: u64,
    requests_size_max: usize,
    in_flight_max: usize,
    deadline: Option<Duration>,
    keepalive: Duration,
    pause_min: Duration,
    pause_max: Duration,
    seed: Option<u64>,
    connector: Option<Arc<Connector>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            token: String::new(),
            name: String::new(),
            authorities: None,
            frame_size_max: limits::FRAME_SIZE_MAX.as_u64() as u32,
            credit_messages: 16_384,
            credit_bytes: ByteSize::mebibytes(16).as_u64(),
            requests_size_max: ByteSize::mebibytes(64).as_usize(),
            in_flight_max: 16_384,
            deadline: Some(DEADLINE),
            keepalive: Duration::from_secs(15),
            pause_min: Duration::from_millis(50),
            pause_max: Duration::from_secs(5),
            seed: None,
            connector: None,
        }
    }
}

impl Builder {
    /// The bearer token that the other side asks for.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = token.into();
        self
    }

    /// The name under which this client sends: subscribers that ask for it see it as the source.
    pub fn name(mut self, name: &str) -> Result<Self, ConnectError> {
        self.name = Name::parse(name)?.to_string();
        Ok(self)
    }

    /// The PEM file of the certificates that are trusted behind `tls://`.
    #[must_use]
    pub fn authorities(mut self, path: impl AsRef<Path>) -> Self {
        self.authorities = Some(path.as_ref().to_owned());
        self
    }

    /// The largest payload that is accepted. Default 8 MiB.
    #[must_use]
    pub fn frame_size_max(mut self, size: ByteSize) -> Self {
        let size = size.as_u64().min(limits::FRAME_SIZE_CEILING.as_u64());
        self.frame_size_max = size as u32;
        self
    }

    /// How many one-way messages, and bytes of them, the other side may send ahead of what the
    /// subscriptions of this client have taken. Default 16,384 and 16 MiB; never less than two of
    /// the largest payloads.
    #[must_use]
    pub fn window(mut self, messages: u32, bytes: ByteSize) -> Self {
        self.credit_messages = messages.max(1);
        self.credit_bytes = bytes.as_u64();
        self
    }

    /// How many bytes of requests to the subscriptions of this client may be under way; above
    /// that they are answered `busy`. Default 64 MiB.
    #[must_use]
    pub fn requests_size_max(mut self, size: ByteSize) -> Self {
        self.requests_size_max = size.as_usize();
        self
    }

    /// How many calls may be under way at once. Default 16,384; the other side may allow less.
    /// Further calls wait, or answer `busy` if they are told to.
    #[must_use]
    pub fn in_flight_max(mut self, count: usize) -> Self {
        self.in_flight_max = count.max(1);
        self
    }

    /// How long a call may take unless it says otherwise, from being made to its answer; `None`
    /// for ever. Default 10 s.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// How long the connection may be silent before the other side is asked whether it is there.
    /// After two and a half times as much it is taken for dead. Default 15 s.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.keepalive = interval;
        self
    }

    /// The pause before a lost connection is tried again: up to `min` at first, doubled with
    /// every attempt up to `max`, and each a random part of it. Default 50 ms and 5 s.
    #[must_use]
    pub fn reconnect(mut self, min: Duration, max: Duration) -> Self {
        self.pause_min = min;
        self.pause_max = max.max(min);
        self
    }

    /// Makes the random parts of the pauses repeatable.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Opens byte streams in another way than by sockets: a simulation, a tunnel.
    #[must_use]
    pub fn connector(
        mut self,
        connect: impl Fn(&Address) -> Connecting + Send + Sync + 'static,
    ) -> Self {
        self.connector = Some(Arc::new(connect));
        self
    }

    /// Connects to a node or a server.
    pub async fn connect(self, address: &str) -> Result<Client, ConnectError> {
        Client::connect_with(self.finish()?, address.parse()?).await
    }

    /// Connects to a callee: a server, or an agent behind a node. See [`Caller::connect`].
    pub async fn connect_caller(self, address: &str) -> Result<Caller, ConnectError> {
        Caller::connect_with(self.finish()?, address).await
    }

    fn finish(self) -> Result<Options, ConnectError> {
        // A frame that is larger than half of the window could wait for ever behind credit that
        // is consumed and not yet worth returning.
        let credit_bytes = self.credit_bytes.max(2 * u64::from(self.frame_size_max));
        Ok(Options {
            token: self.token,
            name: self.name,
            tls: match self.authorities {
                Some(path) => Some(net::client_config(Some(&path))?),
                None => None,
            },
            window: Window {
                frame_size_max: self.frame_size_max,
                calls_max: limits::CALLS_IN_FLIGHT_MAX,
                credit_messages: self.credit_messages,
                credit_bytes,
                keepalive_ms: self.keepalive.as_millis().try_into().unwrap_or(u32::MAX),
            },
            requests_size_max: self.requests_size_max,
            in_flight_max: self.in_flight_max,
            deadline: Timeout::new(self.deadline),
            pause_min: self.pause_min,
            pause_max: self.pause_max,
            seed: self.seed,
            connector: self.connector,
        })
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("in_flight_max", &self.in_flight_max)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
