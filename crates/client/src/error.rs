//! `CallError`: the error type of all client operations.
//!
//! The code is stable and says whether a retry is safe. The message says what happened in this
//! case. `sent` says whether the peer may have received the call.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Failure, Retry};

/// Says whether the call reached the responder that would execute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The call was handed to a responder.
    Yes,
    /// The call was certainly not sent; it was not executed and will not be.
    No,
    /// The call may or may not have reached a responder.
    Unknown,
}

/// A call, send or write that did not succeed.
///
/// ```
/// use telpher_client::{CallError, Sent};
/// use model::{ErrorCode, Retry};
///
/// let error = CallError::new(ErrorCode::Busy, "the window of 8 calls is full");
/// assert_eq!(error.sent, Sent::No);
/// assert_eq!(error.retry(), Retry::Safe);
/// assert!(error.to_string().starts_with("busy: the window of 8 calls is full\nhint: "));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CallError {
    /// Boxed to keep successful results small.
    parts: Box<CallErrorParts>,
}

/// The fields of a [`CallError`], which dereferences to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallErrorParts {
    /// Kind of failure.
    pub code: ErrorCode,
    /// Description for people.
    pub message: String,
    /// Says whether the call may have been executed.
    pub sent: Sent,
    /// Earliest time for a retry, if the peer gave one.
    pub retry_after: Option<Duration>,
    /// Bytes that the handler attached, for programs.
    pub details: Bytes,
}

impl Deref for CallError {
    type Target = CallErrorParts;

    fn deref(&self) -> &CallErrorParts {
        &self.parts
    }
}

impl DerefMut for CallError {
    fn deref_mut(&mut self) -> &mut CallErrorParts {
        &mut self.parts
    }
}

impl CallError {
    /// Creates an error of this side; nothing was sent.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::from_parts(CallErrorParts {
            code,
            message: message.into(),
            sent: Sent::No,
            retry_after: None,
            details: Bytes::new(),
        })
    }

    /// Returns whether the call may be retried. A code whose retry may duplicate becomes safe when
    /// the call was never sent.
    pub fn retry(&self) -> Retry {
        match (self.code.retry(), self.sent) {
            (Retry::MayDuplicate, Sent::No) => Retry::Safe,
            (retry, _) => retry,
        }
    }

    /// Returns advice in one sentence.
    pub fn hint(&self) -> &'static str {
        hint(self.code, self.sent)
    }

    pub(crate) fn with_sent(mut self, sent: Sent) -> Self {
        self.sent = sent;
        self
    }

    /// Converts the failure that the peer sent.
    pub(crate) fn from_wire(failure: &Failure<'_>) -> Self {
        let retry_after_ms = u64::from(failure.retry_after_ms);
        Self::from_parts(CallErrorParts {
            code: failure.code,
            message: failure.message.to_owned(),
            sent: if failure.sent { Sent::Yes } else { Sent::No },
            retry_after: (retry_after_ms > 0).then(|| Duration::from_millis(retry_after_ms)),
            details: Bytes::copy_from_slice(failure.details),
        })
    }

    /// The error for an answer that cannot be decoded.
    pub(crate) fn malformed(error: &wire::Malformed) -> Self {
        Self::new(ErrorCode::Protocol, error.to_string())
    }

    fn from_parts(parts: CallErrorParts) -> Self {
        Self {
            parts: Box::new(parts),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        if let Some(pause) = self.retry_after {
            write!(f, " (try again after {pause:?})")?;
        }
        write!(f, "\nhint: {}", self.hint())
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.parts, f)
    }
}

impl std::error::Error for CallError {}

fn hint(code: ErrorCode, sent: Sent) -> &'static str {
    match code {
        ErrorCode::NoResponder => {
            "check the name (`telpher agents` lists the agents that are connected), or start an agent under it"
        }
        ErrorCode::UnknownMethod => "call one of the methods that the responder registered",
        ErrorCode::Busy => "retrying after a pause is safe; if this goes on, raise the window",
        ErrorCode::Throttled => "retrying is safe once the limit has refilled",
        ErrorCode::TooLarge => "send less at once, or raise `frame_size_max` at the receiver",
        ErrorCode::Denied => {
            "bind the token to that name (`telpher token bind TOKEN --for PATTERN`), or use one that \
             may do this (`--role admin`)"
        }
        ErrorCode::Cancelled => "the caller cancelled it; the handler may have run in part",
        ErrorCode::DeadlineExceeded if sent == Sent::No => {
            "it was never sent; retry with a longer deadline or a larger window"
        }
        ErrorCode::DeadlineExceeded => {
            "it may have been executed; set a longer deadline and retry only if it is idempotent"
        }
        ErrorCode::Unconfirmed => "it may have been executed; retry only if it is idempotent",
        ErrorCode::HandlerError => "the handler ran and returned this error",
        ErrorCode::InvalidArgument => "correct the name, the option or the body",
        ErrorCode::Unauthenticated => "give a valid token; `telpher token add` makes one",
        ErrorCode::Unsupported => {
            "the peer does not support this; upgrade the peer or do not use it"
        }
        ErrorCode::Unavailable => "it was not executed; retry once the cause is gone",
        ErrorCode::Protocol => "the two sides do not understand each other; compare their versions",
        ErrorCode::Internal => "this is a defect; the log of the side that raised it has details",
        ErrorCode::Replaced => {
            "another connection uses the same instance; give each connection its own"
        }
        ErrorCode::Conflict => {
            "read the messages that others appended, then append with the new end as expected"
        }
        ErrorCode::NotFound => "check the name; the first write creates it",
        ErrorCode::Gone => "it was deleted; use another name",
        ErrorCode::IdReused => "use a new id for new content",
        ErrorCode::Trimmed => "start at the oldest retained offset, which is in the details",
        ErrorCode::OverBudget => "raise the budget, or leave out parts of that turn",
        ErrorCode::Moved => "repeat it at the node that leads; it was not executed",
        ErrorCode::LeaseExpired => {
            "the message is delivered again; take it with a longer lease, or renew the lease"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_hint_for_every_state() {
        for code in ErrorCode::ALL {
            for sent in [Sent::Yes, Sent::No, Sent::Unknown] {
                let error = CallError::new(code, "x").with_sent(sent);
                let text = error.to_string();
                let (_, hint) = text.split_once("\nhint: ").unwrap();
                assert!(hint.len() > 10, "{text}");
            }
        }
    }

    #[test]
    fn unsent_calls_are_safe_to_retry() {
        let queued = CallError::new(ErrorCode::DeadlineExceeded, "in the queue");
        assert_eq!(queued.retry(), Retry::Safe);
        assert_eq!(queued.with_sent(Sent::Unknown).retry(), Retry::MayDuplicate);
        let refused = CallError::new(ErrorCode::Denied, "no");
        assert_eq!(refused.retry(), Retry::Never);
    }

    #[test]
    fn an_error_carries_every_field_of_the_failure_frame() {
        let failure = Failure {
            code: ErrorCode::Throttled,
            sent: false,
            retry_after_ms: 250,
            message: "limit `calls` is used up",
            details: b"calls",
        };
        let error = CallError::from_wire(&failure);
        assert_eq!(error.retry_after, Some(Duration::from_millis(250)));
        assert_eq!((error.sent, &error.details[..]), (Sent::No, &b"calls"[..]));
        assert!(error.to_string().contains("try again after 250ms"));
    }
}
