//! The port to webhooks: a request, and its answer in pieces.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
pub use conversations::record::WebhookTarget as Target;

/// The check of the settings of webhook agents.
pub trait WebhookPolicy: Send + Sync {
    /// Checks whether calls to that address are allowed; the error is a text for users.
    fn check(&self, settings: &conversations::record::WebhookSettings) -> Result<(), String>;
}

/// The maker of webhook calls.
pub trait Caller: Send + Sync {
    /// Makes a call. Dropping the result ends it.
    fn call(&self, request: Request) -> Calling;
}

/// A pending answer.
pub type Calling = Pin<Box<dyn Future<Output = Result<Response, CallError>> + Send>>;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The address.
    pub target: Target,
    /// The id of the call, the same in each attempt.
    pub id: String,
    /// The time of the call, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// The secret to sign it with; empty for unsigned calls.
    pub secret: String,
    /// Additional HTTP headers: names and values.
    pub headers: Vec<(String, String)>,
    /// The trace context of W3C, if there is one.
    pub traceparent: Option<String>,
    /// The body, as JSON.
    pub body: Bytes,
    /// Maximum wait for the beginning of the answer and for each piece of it.
    pub timeout: Duration,
}

/// The beginning of an answer.
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The content type with its parameters; empty if absent.
    pub content_type: String,
    /// The pause that the agent requested before a retry.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Pin<Box<dyn Body>>,
}

/// The body of an answer.
pub trait Body: Send {
    /// Returns the next piece; `None` at the end.
    fn poll_piece(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, CallError>>>;
}

/// The reason why the answer or the rest of it is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Calls to this address are not allowed: a retry is useless.
    #[error("{0}")]
    Refused(String),
    /// The agent could not be reached, or the connection was lost.
    #[error("{0}")]
    Lost(String),
    /// The agent took too long.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Response({}, {})", self.status, self.content_type)
    }
}
