//! How a handler says no.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use model::ErrorCode;
use wire::{Correlation, Failure};

/// The error answer of a handler.
///
/// Any error converts into one, so `?` works in handlers; its code is `handler_error` then. It is
/// not an error type itself, so that the conversion can exist.
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
    /// Apart, so that the answers that are none of this stay small.
    parts: Box<FaultParts>,
}

/// What a [`Fault`] says; it dereferences to this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultParts {
    /// `handler_error`, or what fits better.
    pub code: ErrorCode,
    /// For people; up to 1,024 bytes of it travel.
    pub message: String,
    /// For programs; at most 64 KiB, or they are left out.
    pub details: Bytes,
    /// When another try makes sense.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// A `handler_error`.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_code(ErrorCode::HandlerError, message)
    }

    /// Another code than `handler_error`.
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

    /// With bytes for programs.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Bytes>) -> Self {
        self.parts.details = details.into();
        self
    }

    /// With a pause after which another try makes sense.
    #[must_use]
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        self.parts.retry_after = Some(pause);
        self
    }

    pub(crate) fn encode(&self, ran: Ran, correlation: Correlation, out: &mut Vec<u8>) {
        let retry_after = self.retry_after.unwrap_or_default().as_millis();
        let failure = Failure {
            code: self.code,
            sent: ran == Ran::Yes,
            retry_after_ms: retry_after.try_into().unwrap_or(u32::MAX),
            message: &self.message,
            details: &self.details,
        };
        failure.encode(correlation, out);
    }
}

impl Deref for Fault {
    type Target = FaultParts;

    fn deref(&self) -> &FaultParts {
        &self.parts
    }
}

/// Whether the handler was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Yes,
    No,
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
