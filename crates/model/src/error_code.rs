//! Every way an operation can fail, as one list that is never renumbered.
//!
//! The doors translate a code (to an HTTP status, a Kafka error, a native error frame) with one
//! exhaustive `match` each. What a code means is said here, once: its cause, who raises it,
//! whether the operation may have been executed, and whether it is safe to try again.

use std::fmt;

/// May the operation be repeated?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It would fail the same way.
    Never,
    /// It was not executed: repeat it after a pause.
    Safe,
    /// It may have been executed: repeat it only if twice is as good as once.
    MayDuplicate,
}

/// Was the operation executed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// Certainly not.
    No,
    /// The handler ran and said so itself.
    Yes,
    /// Nobody can tell.
    Unknown,
}

/// A failure's stable number, name and advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum ErrorCode {
    /// Nobody is subscribed to the name.
    NoResponder = 1,
    /// The responder has no handler of that name.
    UnknownMethod = 2,
    /// Every window on the way is full.
    Busy = 3,
    /// A limit covers the sender and is used up for now.
    Throttled = 4,
    /// The frame is larger than the receiver accepts.
    TooLarge = 5,
    /// The caller has no right to do this.
    Denied = 6,
    /// The caller gave up.
    Cancelled = 7,
    /// The deadline passed.
    DeadlineExceeded = 8,
    /// The connection was lost before the outcome was known.
    Unconfirmed = 9,
    /// The handler answered with an error of its own.
    HandlerError = 10,
    /// A name, an option or a body is not valid.
    InvalidArgument = 11,
    /// The token is missing, unknown or revoked.
    Unauthenticated = 12,
    /// The other side does not offer this.
    Unsupported = 13,
    /// There is no connection, or the node is draining.
    Unavailable = 14,
    /// The peer broke the protocol.
    Protocol = 15,
    /// A defect on our side.
    Internal = 16,
    /// Another connection subscribed as the same instance.
    Replaced = 17,
    /// The stream does not end where the writer expected.
    Conflict = 18,
    /// There is nothing of that name.
    NotFound = 19,
    /// It was erased, and its name is not used again.
    Gone = 20,
    /// The id stands for something else already.
    IdReused = 21,
    /// What was asked for is not kept any more.
    Trimmed = 22,
    /// A single turn is larger than the budget.
    OverBudget = 23,
}

impl ErrorCode {
    /// Every code, in the order of their numbers.
    pub const ALL: [Self; 23] = [
        Self::NoResponder,
        Self::UnknownMethod,
        Self::Busy,
        Self::Throttled,
        Self::TooLarge,
        Self::Denied,
        Self::Cancelled,
        Self::DeadlineExceeded,
        Self::Unconfirmed,
        Self::HandlerError,
        Self::InvalidArgument,
        Self::Unauthenticated,
        Self::Unsupported,
        Self::Unavailable,
        Self::Protocol,
        Self::Internal,
        Self::Replaced,
        Self::Conflict,
        Self::NotFound,
        Self::Gone,
        Self::IdReused,
        Self::Trimmed,
        Self::OverBudget,
    ];

    /// The code of that number.
    pub fn from_u16(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The number that stands on the wire.
    pub const fn as_u16(self) -> u16 {
        self as u16
    }

    /// The name that people and programs read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoResponder => "no_responder",
            Self::UnknownMethod => "unknown_method",
            Self::Busy => "busy",
            Self::Throttled => "throttled",
            Self::TooLarge => "too_large",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Unconfirmed => "unconfirmed",
            Self::HandlerError => "handler_error",
            Self::InvalidArgument => "invalid_argument",
            Self::Unauthenticated => "unauthenticated",
            Self::Unsupported => "unsupported",
            Self::Unavailable => "unavailable",
            Self::Protocol => "protocol",
            Self::Internal => "internal",
            Self::Replaced => "replaced",
            Self::Conflict => "conflict",
            Self::NotFound => "not_found",
            Self::Gone => "gone",
            Self::IdReused => "id_reused",
            Self::Trimmed => "trimmed",
            Self::OverBudget => "over_budget",
        }
    }

    /// What brings this code about.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::NoResponder => "nobody is subscribed to the name, answered at once",
            Self::UnknownMethod => "the responder has no handler of that name, answered at once",
            Self::Busy => "a window is full: the caller's own, or that of every instance",
            Self::Throttled => "a limit covers the sender; `retry_after` says when it refills",
            Self::TooLarge => "the frame is larger than the receiver's `frame_size_max`",
            Self::Denied => "the token does not carry the right for this operation",
            Self::Cancelled => "the caller dropped the call or cancelled it",
            Self::DeadlineExceeded => {
                "the deadline passed in a queue, on the way or in the handler"
            }
            Self::Unconfirmed => "the connection was lost after the request may have been sent",
            Self::HandlerError => "the handler ran and answered with its own error",
            Self::InvalidArgument => "a name, an option or a body could not be understood",
            Self::Unauthenticated => "the token is missing, unknown or revoked",
            Self::Unsupported => "the version, feature or durability is not offered here",
            Self::Unavailable => "there is no connection, or the node is draining",
            Self::Protocol => "the peer sent bytes that are not the protocol",
            Self::Internal => "a defect; the log of the side that raised it says more",
            Self::Replaced => "the same instance subscribed again from another connection",
            Self::Conflict => "the stream does not end where the append expected: others appended",
            Self::NotFound => "nothing was ever kept under the name",
            Self::Gone => "what had the name was erased; the name is not used again",
            Self::IdReused => "the id was used before, for something else",
            Self::Trimmed => "what was asked for lies before the oldest that is kept",
            Self::OverBudget => "a single turn of the conversation is larger than the budget",
        }
    }

    /// Who answers with this code.
    pub const fn raised_by(self) -> &'static str {
        match self {
            Self::NoResponder
            | Self::Throttled
            | Self::Denied
            | Self::Replaced
            | Self::Conflict
            | Self::NotFound
            | Self::Gone
            | Self::IdReused
            | Self::Trimmed
            | Self::OverBudget => "node",
            Self::UnknownMethod | Self::HandlerError => "responder",
            Self::Unconfirmed | Self::Cancelled | Self::DeadlineExceeded => "client or node",
            Self::Busy | Self::TooLarge | Self::InvalidArgument => "client, node or responder",
            Self::Unauthenticated | Self::Unsupported => "node or responder",
            Self::Unavailable => "client or node",
            Self::Protocol | Self::Internal => "any side",
        }
    }

    /// Whether the operation may have been executed.
    pub const fn executed(self) -> Executed {
        match self {
            Self::HandlerError => Executed::Yes,
            Self::Cancelled | Self::DeadlineExceeded | Self::Unconfirmed | Self::Internal => {
                Executed::Unknown
            }
            _ => Executed::No,
        }
    }

    /// Whether it may be tried again.
    pub const fn retry(self) -> Retry {
        match self {
            Self::NoResponder | Self::Busy | Self::Throttled | Self::Unavailable => Retry::Safe,
            Self::DeadlineExceeded | Self::Unconfirmed => Retry::MayDuplicate,
            Self::UnknownMethod
            | Self::TooLarge
            | Self::Denied
            | Self::Cancelled
            | Self::HandlerError
            | Self::InvalidArgument
            | Self::Unauthenticated
            | Self::Unsupported
            | Self::Protocol
            | Self::Internal
            | Self::Replaced
            | Self::Conflict
            | Self::NotFound
            | Self::Gone
            | Self::IdReused
            | Self::Trimmed
            | Self::OverBudget => Retry::Never,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for ErrorCode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|code| code.as_str() == text)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back_to_their_code() {
        for (index, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(code.as_u16()), index + 1);
            assert_eq!(ErrorCode::from_u16(code.as_u16()), Some(code));
            assert_eq!(code.as_str().parse(), Ok(code));
        }
        assert_eq!(ErrorCode::from_u16(0), None);
        assert_eq!(ErrorCode::from_u16(24), None);
    }

    #[test]
    fn only_what_was_not_executed_is_safe_to_retry() {
        for code in ErrorCode::ALL {
            if code.retry() == Retry::Safe {
                assert_eq!(code.executed(), Executed::No, "{code}");
            }
        }
    }
}
