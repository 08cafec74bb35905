//! A server: functions by method, called over connections of its own or through a node.

mod accept;
mod arrival;
mod attach;
mod connection;
mod guard;
mod handlers;
mod item_sender;
mod listening;
mod reply;
mod request;
mod resolver;
mod responder;
mod routes;
mod running;
mod turn_clock;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{ByteSize, limits};
use wire::Window;

pub use attach::Attached;
pub use item_sender::ItemSender;
pub use listening::{ListenError, Listening};
pub use request::Request;

pub(crate) use handlers::Handlers;
pub(crate) use reply::{encode_only_item, too_large};
pub(crate) use resolver::Resolver;
pub(crate) use responder::{Responder, Violation};

use crate::Fault;
use handlers::{AsyncHandler, Handler, StreamHandler, SyncHandler};

/// Functions by method, served to whoever connects or through a node.
///
/// A handler is polled once where its request is read; if it is done then, the answer is queued at
/// once. A handler that waits is polled by the same task: no handler of one connection runs beside
/// another of it, so whoever computes for long should `tokio::spawn`. A handler is dropped when its
/// caller cancels or its time is up, so it should be written as anything that `select!` may drop.
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

/// Judges a token.
type Admit = dyn Fn(&str) -> bool + Send + Sync;

/// What a server takes in.
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
    /// Without handlers.
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
                handshake_timeout: crate::handshake::HANDSHAKE_TIMEOUT,
                admit: None,
                tls: None,
            },
        }
    }

    /// Answers calls of `method` with an `async` function. The empty method is that of plain
    /// messages and requests to a name. A second handler of the same method replaces the first.
    #[must_use]
    pub fn handle<F, Fut, B>(self, method: &str, function: F) -> Self
    where
        F: Fn(Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<B, Fault>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
    {
        self.insert(method, AsyncHandler::new(function))
    }

    /// Answers calls of `method` with a function that does not wait.
    #[must_use]
    pub fn handle_sync<F, B>(self, method: &str, function: F) -> Self
    where
        F: Fn(Request) -> Result<B, Fault> + Send + Sync + 'static,
        B: AsRef<[u8]> + 'static,
    {
        self.insert(method, SyncHandler::new(function))
    }

    /// Answers calls of `method` with any number of items.
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
        self.insert(method, StreamHandler::new(function))
    }

    /// The largest payload that is accepted. Default 8 MiB.
    #[must_use]
    pub fn frame_size_max(mut self, size: ByteSize) -> Self {
        let size = size.as_u64().min(limits::FRAME_SIZE_CEILING.as_u64());
        let window = &mut self.options.window;
        window.frame_size_max = size as u32;
        window.credit_bytes = window.credit_bytes.max(2 * size);
        self
    }

    /// How many calls a connection may have under way. Default 65,536; further ones are answered
    /// `busy`.
    #[must_use]
    pub fn calls_max(mut self, count: u32) -> Self {
        self.options.window.calls_max = count.max(1);
        self
    }

    /// How many bytes of requests a connection may have under way. Default 64 MiB; further ones
    /// are answered `busy`.
    #[must_use]
    pub fn requests_size_max(mut self, size: ByteSize) -> Self {
        self.options.requests_size_max = size.as_usize();
        self
    }

    /// How many one-way messages, and bytes of them, a caller may send ahead of the handlers.
    /// Default 16,384 and 16 MiB; never less than two of the largest payloads.
    #[must_use]
    pub fn window(mut self, messages: u32, bytes: ByteSize) -> Self {
        let window = &mut self.options.window;
        window.credit_messages = messages.max(1);
        window.credit_bytes = bytes.as_u64().max(2 * u64::from(window.frame_size_max));
        self
    }

    /// How long a connection may be silent before the caller is asked whether it is there; after
    /// two and a half times as much it is taken for dead. Default 15 s.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.options.window.keepalive_ms = interval.as_millis().try_into().unwrap_or(u32::MAX);
        self
    }

    /// How long a caller may take to introduce itself. Default 5 s.
    #[must_use]
    pub fn handshake_timeout(mut self, time: Duration) -> Self {
        self.options.handshake_timeout = time;
        self
    }

    /// Serves only callers whose token `admit` accepts.
    #[must_use]
    pub fn admit(mut self, admit: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.options.admit = Some(Arc::new(admit));
        self
    }

    /// The PEM files of the certificate chain and its key, for `tls://` addresses.
    #[must_use]
    pub fn tls(mut self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.options.tls = Some((certificate.as_ref().to_owned(), key.as_ref().to_owned()));
        self
    }

    fn insert(mut self, method: &str, handler: impl Handler + 'static) -> Self {
        self.handlers.insert(method, Arc::new(handler));
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
