//! A blocking client without a runtime: one socket, used by one thread at a time.
//!
//! The client is for the lowest latency of sequential calls. While waiting for a reply, it can spin
//! for a few microseconds before it sleeps ([`Spin`]). If both ends have a processor of their own,
//! that saves the wake-up, which costs more than the rest of the call. The protocol and the errors
//! are those of [`crate::Client`].

mod connection;
mod socket;
mod spin;

use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Name, limits};
use wire::{Role, Window};

use crate::calls::caller::split_name;
use crate::{CallError, ConnectError};
use connection::{Connection, HandshakeOptions, Settle};

pub use spin::Spin;

/// A blocking client that calls one callee. Its address is as for [`crate::Caller::connect`], with
/// `tcp://` or `unix://`.
///
/// ```
/// use telpher_client::{Server, blocking};
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
/// # let server = Server::new().handle("echo", |request: telpher_client::Request| async { Ok(request.body) });
/// # let listening = runtime.block_on(server.listen("tcp://127.0.0.1:0"))?;
/// # let address = listening.address();
/// let mut client = blocking::Client::connect(address)?;
/// assert_eq!(client.call("echo", "hello")?, "hello");
///
/// let replies = client.call_batch("echo", ["a", "b", "c"]);
/// assert_eq!(replies.into_iter().collect::<Result<Vec<_>, _>>()?, ["a", "b", "c"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    connection: Option<Connection>,
}

/// Builds a [`Client`]. From [`Client::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    token: String,
    deadline: Duration,
    spin: Spin,
    frame_size_max: u32,
}

/// Options kept for reconnects.
#[derive(Debug)]
struct Settings {
    address: net::Address,
    /// Name of the agent behind the node; empty for a server.
    name: String,
    token: String,
    deadline: Duration,
    spin: Spin,
    window: Window,
}

impl Client {
    /// Connects with the default options.
    pub fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::builder().connect(address)
    }

    /// Returns a builder with the default options.
    pub fn builder() -> Builder {
        Builder {
            token: String::new(),
            deadline: Duration::from_secs(10),
            spin: Spin::Auto,
            frame_size_max: limits::FRAME_SIZE_MAX.as_u64() as u32,
        }
    }

    /// Calls a method and waits for the reply.
    pub fn call(&mut self, method: &str, body: impl AsRef<[u8]>) -> Result<Bytes, CallError> {
        let mut reply = Bytes::new();
        self.call_with(method, body.as_ref(), |body| {
            reply = Bytes::copy_from_slice(body);
        })?;
        Ok(reply)
    }

    /// Calls a method, waits for the reply and passes it to `take` as a slice of the read buffer,
    /// without an allocation.
    pub fn call_with(
        &mut self,
        method: &str,
        body: &[u8],
        take: impl FnOnce(&[u8]),
    ) -> Result<(), CallError> {
        let mut take = Some(take);
        let mut outcome = Err(CallError::new(ErrorCode::Internal, "no outcome"));
        self.run(method, &[body], &mut |_, answer| {
            outcome = answer.map(|reply| {
                if let Some(take) = take.take() {
                    take(reply);
                }
            });
        });
        outcome
    }

    /// Calls a method with all of `bodies`, with many calls in flight, and waits for all replies.
    /// Returns the outcomes in the order of the bodies.
    pub fn call_batch<I>(&mut self, method: &str, bodies: I) -> Vec<Result<Bytes, CallError>>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        let bodies: Vec<I::Item> = bodies.into_iter().collect();
        let slices: Vec<&[u8]> = bodies.iter().map(AsRef::as_ref).collect();
        let unknown = || Err(CallError::new(ErrorCode::Internal, "no outcome"));
        let mut outcomes: Vec<_> = slices.iter().map(|_| unknown()).collect();
        self.run(method, &slices, &mut |index, answer| {
            outcomes[index] = answer.map(Bytes::copy_from_slice);
        });
        outcomes
    }

    /// Makes the calls. `settle` gets every outcome once, with the index of its body.
    fn run(&mut self, method: &str, bodies: &[&[u8]], settle: Settle<'_>) {
        match self.connected() {
            Ok(connection) => connection.run(method, bodies, settle),
            Err(error) => {
                for index in 0..bodies.len() {
                    settle(index, Err(error.clone()));
                }
            }
        }
    }

    /// Returns the connection; reconnects if it was lost.
    fn connected(&mut self) -> Result<&mut Connection, CallError> {
        if let Some(connection) = &mut self.connection {
            connection.check_idle();
        }
        match self.connection.take().filter(Connection::is_usable) {
            Some(connection) => Ok(self.connection.insert(connection)),
            None => {
                let connection = open(&self.settings)
                    .map_err(|error| CallError::new(ErrorCode::Unavailable, error.brief()))?;
                Ok(self.connection.insert(connection))
            }
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

    /// Sets how long a call may take. Default 10 s.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets whether and how long to spin before sleeping. Default [`Spin::Auto`].
    #[must_use]
    pub fn spin(mut self, spin: Spin) -> Self {
        self.spin = spin;
        self
    }

    /// Sets the size of the largest reply that is accepted. Default 8 MiB.
    #[must_use]
    pub fn frame_size_max(mut self, size: model::ByteSize) -> Self {
        let size = size.as_u64().min(limits::FRAME_SIZE_CEILING.as_u64());
        self.frame_size_max = size as u32;
        self
    }

    /// Connects to a server, or to the agent whose name follows the `#` after a node's address.
    pub fn connect(self, address: &str) -> Result<Client, ConnectError> {
        let (address, name) = split_name(address)?;
        let settings = Settings {
            address: address.parse()?,
            name: name.as_ref().map_or("", Name::as_str).to_owned(),
            token: self.token,
            deadline: self.deadline,
            spin: self.spin,
            window: Window {
                frame_size_max: self.frame_size_max,
                calls_max: 0,
                credit_messages: 0,
                credit_bytes: 0,
                keepalive_ms: 0,
            },
        };
        let connection = Some(open(&settings)?);
        Ok(Client {
            settings,
            connection,
        })
    }
}

fn open(settings: &Settings) -> Result<Connection, ConnectError> {
    let handshake = HandshakeOptions {
        token: &settings.token,
        window: settings.window,
        name: &settings.name,
        deadline: settings.deadline,
        spin: settings.spin,
    };
    let connection = Connection::open(&settings.address, handshake)?;
    let address = || settings.address.to_string();
    match (connection.role(), settings.name.is_empty()) {
        (Role::Node, true) => Err(ConnectError::NameMissing { address: address() }),
        (Role::Server, false) => Err(ConnectError::NameUnused { address: address() }),
        _ => Ok(connection),
    }
}
