//! `Fault`: the error that a handler returns.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Failure};
use wire::Correlation;

/// Error returned by a handler.
///
/// Every error type converts into a fault with the code `handler_error`, so `?` works in handlers.
/// `Fault` itself does not implement `Error`, because that would forbid the conversion.
///
/// ```
/// use telpher_client::{Fault, Server};
///
/// let server = Server::new().handle("parse", |request: telpher_client::Request| async move {
///     let text = std::str::from_utf8(&request.body)?;
///     let number: i64 = text.parse()?;
///     if number < 0 {
///         return Err(Fault::new("the number is negative").with_details(text.to_owned()));
///     }
///     Ok(number.to_string())
/// });
/// # drop(server);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Fault {
    /// Boxed to keep successful results small.
    parts: Box<FaultParts>,
}

/// The fields of a [`Fault`], which dereferences to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultParts {
    /// Error code; `handler_error` unless another one fits better.
    pub code: ErrorCode,
    /// Description for people; at most 1,024 bytes are sent.
    pub message: String,
    /// Bytes for programs; not sent if larger than 64 KiB.
    pub details: Bytes,
    /// Time after which the caller may retry.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// Creates a fault with the code `handler_error`.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_code(ErrorCode::HandlerError, message)
    }

    /// Creates a fault with another code.
    pub fn with_code(code: ErrorCode, message: impl Into<String>) -> Self {
        let parts = FaultParts {
            code,
            message: message.into(),
            details: Bytes::new(),
            retry_after: None,
        };
        Self {
            parts: Box::new(parts),
        }
    }

    /// Adds bytes for programs.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Bytes>) -> Self {
        self.parts.details = details.into();
        self
    }

    /// Adds the time after which the caller may retry.
    #[must_use]
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        self.parts.retry_after = Some(pause);
        self
    }

    pub(crate) fn encode(&self, execution: Execution, correlation: Correlation, out: &mut Vec<u8>) {
        let retry_after = self.retry_after.unwrap_or_default().as_millis();
        let failure = Failure {
            code: self.code,
            sent: execution == Execution::Started,
            retry_after_ms: retry_after.try_into().unwrap_or(u32::MAX),
            message: &self.message,
            details: &self.details,
        };
        wire::encode_failure(&failure, correlation, out);
    }
}

impl Deref for Fault {
    type Target = FaultParts;

    fn deref(&self) -> &FaultParts {
        &self.parts
    }
}

/// Says whether the handler was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    Started,
    NotStarted,
}

impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(message)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({}: {})", self.code, self.message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
