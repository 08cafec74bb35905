//! The way out to agents that are called: a request, and the answer piece by piece.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
pub use conversations::record::WebhookTarget as Target;

/// Whoever makes calls.
pub trait Caller: Send + Sync {
    /// Whether calls may go there; why not, for people.
    fn check(&self, settings: &conversations::record::WebhookSettings) -> Result<(), String>;

    /// Makes a call; it ends when what is returned is dropped.
    fn call(&self, request: Request) -> Calling;
}

/// An answer that is waited for.
pub type Calling = Pin<Box<dyn Future<Output = Result<Response, CallError>> + Send>>;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// To whom.
    pub target: Target,
    /// The same for each attempt.
    pub id: String,
    /// When, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// What it is signed with; empty if it is not.
    pub secret: String,
    /// Sent with it: names and values.
    pub headers: Vec<(String, String)>,
    /// JSON.
    pub body: Bytes,
    /// How long the beginning of the answer may take, and each piece of it.
    pub timeout: Duration,
}

/// An answer, as far as it is there.
pub struct Response {
    /// Of HTTP.
    pub status: u16,
    /// Its type with its parameters, empty if it does not say.
    pub content_type: String,
    /// When to try again, if it says so.
    pub retry_after: Option<Duration>,
    /// The rest.
    pub body: Pin<Box<dyn Body>>,
}

/// The rest of an answer.
pub trait Body: Send {
    /// The next piece; `None` at the end.
    fn poll_piece(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, CallError>>>;
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Calls do not go there: another attempt makes no sense.
    #[error("{0}")]
    Refused(String),
    /// It was not reached, or is gone.
    #[error("{0}")]
    Lost(String),
    /// It took too long.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Response({}, {})", self.status, self.content_type)
    }
}
