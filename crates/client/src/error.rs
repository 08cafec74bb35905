//! How a call ends when it does not end well.
//!
//! One type for every verb. Its code is stable and says whether trying again is safe; its message
//! says what happened here; `sent` says whether the other side may have seen the call.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Retry};
use wire::Failure;

/// Did the call reach whoever would have executed it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It was handed to a responder.
    Yes,
    /// Certainly not: it was not executed and will not be.
    No,
    /// Nobody can tell.
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
    /// Apart, so that the outcomes that are none of this stay small.
    parts: Box<CallErrorParts>,
}

/// What a [`CallError`] says; it dereferences to this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallErrorParts {
    /// What kind of failure.
    pub code: ErrorCode,
    /// What happened, for people.
    pub message: String,
    /// Whether the call may have been executed.
    pub sent: Sent,
    /// When another try makes sense, if the other side said so.
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
    /// A failure on this side: nothing was sent.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::from_parts(CallErrorParts {
            code,
            message: message.into(),
            sent: Sent::No,
            retry_after: None,
            details: Bytes::new(),
        })
    }

    /// Whether the call may be repeated. A code that may duplicate is safe after all when the
    /// call never left.
    pub fn retry(&self) -> Retry {
        match (self.code.retry(), self.sent) {
            (Retry::MayDuplicate, Sent::No) => Retry::Safe,
            (retry, _) => retry,
        }
    }

    /// What to do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        hint(self.code, self.sent)
    }

    pub(crate) fn with_sent(mut self, sent: Sent) -> Self {
        self.sent = sent;
        self
    }

    /// As the peer said it.
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
            "check the name (`telpher agents` lists who is there), or start an agent under it"
        }
        ErrorCode::UnknownMethod => "call one of the methods that the responder registered",
        ErrorCode::Busy => "trying again after a pause is safe; a larger window helps if it stays",
        ErrorCode::Throttled => "trying again is safe once the limit has refilled",
        ErrorCode::TooLarge => "send less at once, or raise `frame_size_max` at the receiver",
        ErrorCode::Denied => {
            "bind the token to that name (`telpher token bind TOKEN --for PATTERN`), or use one that \
             may do this (`--role admin`)"
        }
        ErrorCode::Cancelled => "nobody waits for it any more; it may have run part of the way",
        ErrorCode::DeadlineExceeded if sent == Sent::No => {
            "it was never sent: trying again is safe, with a longer deadline or a larger window"
        }
        ErrorCode::DeadlineExceeded => {
            "it may have been executed; give it a longer deadline, repeat it only if it is idempotent"
        }
        ErrorCode::Unconfirmed => "it may have been executed; repeat it only if it is idempotent",
        ErrorCode::HandlerError => "the handler ran and refused; its message says why",
        ErrorCode::InvalidArgument => "correct the name, the option or the body",
        ErrorCode::Unauthenticated => "give a valid token; `telpher token add` makes one",
        ErrorCode::Unsupported => "the other side does not offer this; upgrade it or do without",
        ErrorCode::Unavailable => {
            "it was not executed: trying again is safe once its cause has passed"
        }
        ErrorCode::Protocol => "the two sides do not understand each other; compare their versions",
        ErrorCode::Internal => "this is a defect; the log of the side that raised it says more",
        ErrorCode::Replaced => "another connection uses the same instance; give each its own",
        ErrorCode::Conflict => "read what others appended, decide anew, and expect the new end",
        ErrorCode::NotFound => "check the name; whatever is kept under it is made by its first use",
        ErrorCode::Gone => "it was erased on purpose; use another name",
        ErrorCode::IdReused => "give what is new an id of its own",
        ErrorCode::Trimmed => "begin at the oldest that is kept, which the details name",
        ErrorCode::OverBudget => "allow a larger budget, or leave parts of that turn out",
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
    fn what_never_left_is_safe_to_repeat() {
        let queued = CallError::new(ErrorCode::DeadlineExceeded, "in the queue");
        assert_eq!(queued.retry(), Retry::Safe);
        assert_eq!(queued.with_sent(Sent::Unknown).retry(), Retry::MayDuplicate);
        let refused = CallError::new(ErrorCode::Denied, "no");
        assert_eq!(refused.retry(), Retry::Never);
    }

    #[test]
    fn a_failure_keeps_everything_the_peer_said() {
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
