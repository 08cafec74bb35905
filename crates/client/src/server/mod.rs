//! `Server`: an RPC server that calls a function for each method, over its own connections or
//! through a node.

mod accept;
mod arrival;
mod attach;
mod bodies;
mod borrowed;
mod connection;
mod guard;
mod handlers;
mod item_sender;
mod jobs;
mod listening;
mod reply;
mod request;
mod resolver;
mod responder;
mod routes;
mod turn_clock;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{ByteSize, limits};
use wire::Window;

pub use attach::Attachment;
pub use borrowed::{BorrowedRequest, ReplyBody};
pub use item_sender::ItemSender;
pub use listening::{ListenError, ListeningServer};
pub use request::Request;

pub(crate) use handlers::Handlers;
pub(crate) use resolver::Resolver;
pub(crate) use responder::{Responder, Violation};

use crate::Fault;
use handlers::{Handler, async_handler, borrowing_handler, stream_handler, sync_handler};

/// An RPC server: handler functions by method, called by connected clients or through a node.
///
/// A handler is polled once when its request is read; if it completes at once, its reply is queued
/// at once. A handler that waits is polled by the task of its connection. Handlers of one
/// connection never run in parallel, so a long computation should use `tokio::spawn`. A handler is
/// dropped when its caller cancels the call or the deadline passes, so it must be safe to drop at
/// any `await`, as with `select!`.
///
/// ```
/// use telpher_client::{Caller, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::new()
///     .handle("echo", |request: telpher_client::Request| async move { Ok(request.body) })
///     .handle_sync("length", |request| Ok(request.body.len().to_string()));
/// let listening = server.listen("tcp://127.0.0.1:0").await?;
///
/// let caller = Caller::connect(listening.address()).await?;
/// assert_eq!(caller.call("echo", "hello").await?, "hello");
/// assert_eq!(caller.call("length", "hello").await?, "5");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    handlers: Handlers,
    options: Options,
}

/// Function that accepts or rejects a token.
type Admit = dyn Fn(&str) -> bool + Send + Sync;

/// Limits and security options of a server.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) window: Window,
    pub(crate) requests_size_max: usize,
    pub(crate) handshake_timeout: Duration,
    pub(crate) admit: Option<Arc<Admit>>,
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// Creates a server without handlers.
    pub fn new() -> Self {
        let window = Window {
            frame_size_max: limits::FRAME_SIZE_MAX.as_u64() as u32,
            calls_max: limits::CALLS_IN_FLIGHT_MAX,
            credit_messages: 16_384,
            credit_bytes: ByteSize::mebibytes(16).as_u64(),
            keepalive_ms: 15_000,
        };
        Self {
            handlers: Handlers::default(),
            options: Options {
                window,
                requests_size_max: ByteSize::mebibytes(64).as_usize(),
                handshake_timeout: crate::connection::handshake::HANDSHAKE_TIMEOUT,
                admit: None,
                tls: None,
            },
        }
    }

    /// Registers an `async` handler for `method`. The empty method receives plain messages and
    /// requests to a name. A second handler for the same method replaces the first.
    #[must_use]
    pub fn handle<F, Fut, B>(self, method: &str, function: F) -> Self
    where
        F: Fn(Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<B, Fault>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
    {
        self.insert(method, async_handler(function))
    }

    /// Registers a handler that is not `async` for `method`.
    #[must_use]
    pub fn handle_sync<F, B>(self, method: &str, function: F) -> Self
    where
        F: Fn(Request) -> Result<B, Fault> + Send + Sync + 'static,
        B: AsRef<[u8]> + 'static,
    {
        self.insert(method, sync_handler(function))
    }

    /// Registers a handler that is not `async` for `method`, and that copies neither the request nor
    /// the reply: it borrows the request, and writes the reply where it is sent from. The fastest
    /// kind of handler, for short work on small bodies.
    ///
    /// ```
    /// use telpher_client::{Caller, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::new().handle_borrowed("echo", |request, reply| {
    ///     reply.extend_from_slice(request.body());
    ///     Ok(())
    /// });
    /// let listening = server.listen("tcp://127.0.0.1:0").await?;
    ///
    /// let caller = Caller::connect(listening.address()).await?;
    /// assert_eq!(caller.call("echo", "hello").await?, "hello");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn handle_borrowed<F>(self, method: &str, function: F) -> Self
    where
        F: Fn(BorrowedRequest<'_>, &mut ReplyBody<'_>) -> Result<(), Fault> + Send + Sync + 'static,
    {
        self.insert(method, borrowing_handler(function))
    }

    /// Registers a handler that replies with any number of items.
    ///
    /// ```
    /// use telpher_client::{Caller, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::new().handle_stream("count", |request, items| async move {
    ///     let to: u32 = std::str::from_utf8(&request.body)?.parse()?;
    ///     for number in 0..to {
    ///         items.send(number.to_string()).await?;
    ///     }
    ///     Ok(())
    /// });
    /// let listening = server.listen("tcp://127.0.0.1:0").await?;
    ///
    /// let caller = Caller::connect(listening.address()).await?;
    /// let mut items = caller.stream("count", "3");
    /// let mut seen = Vec::new();
    /// while let Some(item) = items.next().await {
    ///     seen.push(item?);
    /// }
    /// assert_eq!(seen, ["0", "1", "2"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn handle_stream<F, Fut>(self, method: &str, function: F) -> Self
    where
        F: Fn(Request, ItemSender) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Fault>> + Send + 'static,
    {
        self.insert(method, stream_handler(function))
    }

    /// Sets the size of the largest payload that the server accepts. Default 8 MiB.
    #[must_use]
    pub fn frame_size_max(mut self, size: ByteSize) -> Self {
        let size = size.as_u64().min(limits::FRAME_SIZE_CEILING.as_u64());
        let window = &mut self.options.window;
        window.frame_size_max = size as u32;
        window.credit_bytes = window.credit_bytes.max(2 * size);
        self
    }

    /// Sets how many calls of a connection may be in flight; further calls are answered with
    /// `busy`. Default 65,536.
    #[must_use]
    pub fn calls_max(mut self, count: u32) -> Self {
        self.options.window.calls_max = count.max(1);
        self
    }

    /// Sets how many bytes of requests of a connection may be in flight; further requests are
    /// answered with `busy`. Default 64 MiB.
    #[must_use]
    pub fn requests_size_max(mut self, size: ByteSize) -> Self {
        self.options.requests_size_max = size.as_usize();
        self
    }

    /// Sets how many one-way messages, and bytes of them, a client may send before the handlers
    /// take them. Default 16,384 messages and 16 MiB; never less than twice the largest payload.
    #[must_use]
    pub fn window(mut self, messages: u32, bytes: ByteSize) -> Self {
        let window = &mut self.options.window;
        window.credit_messages = messages.max(1);
        window.credit_bytes = bytes.as_u64().max(2 * u64::from(window.frame_size_max));
        self
    }

    /// Sets how long a connection may be silent before the server sends a keepalive. After 2.5
    /// times as long without an answer the connection counts as lost. Default 15 s.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.options.window.keepalive_ms = interval.as_millis().try_into().unwrap_or(u32::MAX);
        self
    }

    /// Sets how long a client may take for the handshake. Default 5 s.
    #[must_use]
    pub fn handshake_timeout(mut self, time: Duration) -> Self {
        self.options.handshake_timeout = time;
        self
    }

    /// Accepts only clients whose token `admit` accepts.
    #[must_use]
    pub fn admit(mut self, admit: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.options.admit = Some(Arc::new(admit));
        self
    }

    /// Sets the PEM files of the certificate chain and its key, for `tls://` addresses.
    #[must_use]
    pub fn tls(mut self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.options.tls = Some((certificate.as_ref().to_owned(), key.as_ref().to_owned()));
        self
    }

    fn insert(mut self, method: &str, handler: Arc<Handler>) -> Self {
        self.handlers.insert(method, handler);
        self
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("methods", &self.handlers.methods())
            .finish_non_exhaustive()
    }
}
