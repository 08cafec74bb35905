//! `Builder`: sets the options of a client and connects it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{ByteSize, Name, limits};
use net::Address;
use wire::Window;

use crate::options::{Connecting, Connector, Options};
use crate::state::clock::Timeout;
use crate::{Caller, Client, ConnectError};

/// Default deadline of a call.
const DEADLINE: Duration = Duration::from_secs(10);

/// Builds a [`Client`]. From [`Client::builder`].
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
    /// Sets the bearer token for a node or server that requires one.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = token.into();
        self
    }

    /// Sets the name under which this client sends. Receivers see it as the source of a message.
    pub fn name(mut self, name: &str) -> Result<Self, ConnectError> {
        self.name = Name::parse(name)?.to_string();
        Ok(self)
    }

    /// Sets the PEM file of the certificate authorities trusted for `tls://` addresses.
    #[must_use]
    pub fn authorities(mut self, path: impl AsRef<Path>) -> Self {
        self.authorities = Some(path.as_ref().to_owned());
        self
    }

    /// Sets the size of the largest payload that this client accepts. Default 8 MiB.
    #[must_use]
    pub fn frame_size_max(mut self, size: ByteSize) -> Self {
        let size = size.as_u64().min(limits::FRAME_SIZE_CEILING.as_u64());
        self.frame_size_max = size as u32;
        self
    }

    /// Sets how many one-way messages, and bytes of them, the peer may send before the
    /// subscriptions of this client take them. Default 16,384 messages and 16 MiB; never less than
    /// twice the largest payload.
    #[must_use]
    pub fn window(mut self, messages: u32, bytes: ByteSize) -> Self {
        self.credit_messages = messages.max(1);
        self.credit_bytes = bytes.as_u64();
        self
    }

    /// Sets how many bytes of requests to this client's subscriptions may be in flight; further
    /// requests are answered with `busy`. Default 64 MiB.
    #[must_use]
    pub fn requests_size_max(mut self, size: ByteSize) -> Self {
        self.requests_size_max = size.as_usize();
        self
    }

    /// Sets how many calls may be in flight. Default 16,384; the peer may allow fewer. Further
    /// calls wait, or fail with `busy` if they are set to.
    #[must_use]
    pub fn in_flight_max(mut self, count: usize) -> Self {
        self.in_flight_max = count.max(1);
        self
    }

    /// Sets the default deadline of a call, from its start to its reply; `None` for no limit.
    /// Default 10 s.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets how long the connection may be silent before the client sends a keepalive. After 2.5
    /// times as long without an answer the connection counts as lost. Default 15 s.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.keepalive = interval;
        self
    }

    /// Sets the pauses between reconnect attempts. Each pause is random between zero and a limit
    /// that starts at `min` and doubles with every attempt up to `max`. Default 50 ms and 5 s.
    #[must_use]
    pub fn reconnect(mut self, min: Duration, max: Duration) -> Self {
        self.pause_min = min;
        self.pause_max = max.max(min);
        self
    }

    /// Sets the seed of the random pauses, which makes them repeatable.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Replaces sockets by another way to open byte streams, such as a simulation or a tunnel.
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

    /// Connects to a server, or to an agent behind a node. See [`Caller::connect`].
    pub async fn connect_caller(self, address: &str) -> Result<Caller, ConnectError> {
        Caller::connect_with(self.finish()?, address).await
    }

    /// Validates the options and reads the certificates.
    fn finish(self) -> Result<Options, ConnectError> {
        // With a smaller window, a frame of more than half its size could wait forever: the credit
        // for what was consumed may be too little to be returned yet.
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

impl Client {
    /// Connects with the default options.
    pub async fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::builder().connect(address).await
    }

    /// Returns a builder with the default options.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Caller {
    /// Connects to a server (`tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH`,
    /// `inproc://NAME`), or to the agent whose name follows a `#` after the address of a node.
    pub async fn connect(address: &str) -> Result<Self, ConnectError> {
        Client::builder().connect_caller(address).await
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
