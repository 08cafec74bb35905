//! Error codes: one list of all failures, which is never renumbered.
//!
//! Each protocol translates a code (to an HTTP status, a Kafka error, a native error frame) with
//! one exhaustive `match`. Each code's meaning is defined here, once: its cause, who raises it,
//! whether the operation may have been executed, and whether a retry is safe.

use std::fmt;

/// Retry advice for a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// A retry would fail the same way.
    Never,
    /// The operation was not executed; retry after a pause.
    Safe,
    /// The operation may have been executed; retry only if it is idempotent.
    MayDuplicate,
}

/// Execution state of a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// Not executed.
    No,
    /// Executed: the handler ran and returned the error.
    Yes,
    /// Unknown.
    Unknown,
}

/// A failure's stable number, name and properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum ErrorCode {
    /// The name has no subscriber.
    NoResponder = 1,
    /// The responder has no handler for the method.
    UnknownMethod = 2,
    /// A window on the way is full.
    Busy = 3,
    /// A limit of the sender is used up for now.
    Throttled = 4,
    /// The frame is larger than the receiver accepts.
    TooLarge = 5,
    /// The caller lacks the permission.
    Denied = 6,
    /// The caller cancelled the operation.
    Cancelled = 7,
    /// The deadline passed.
    DeadlineExceeded = 8,
    /// The connection was lost before the outcome was known.
    Unconfirmed = 9,
    /// The handler answered with an error of its own.
    HandlerError = 10,
    /// A name, an option or a body is invalid.
    InvalidArgument = 11,
    /// The token is missing, unknown or revoked.
    Unauthenticated = 12,
    /// The peer does not support this.
    Unsupported = 13,
    /// There is no connection, or the node is draining.
    Unavailable = 14,
    /// The peer violated the protocol.
    Protocol = 15,
    /// A bug in Telpher.
    Internal = 16,
    /// Another connection subscribed as the same instance.
    Replaced = 17,
    /// The stream does not end where the writer expected.
    Conflict = 18,
    /// The name does not exist.
    NotFound = 19,
    /// The named object was erased; its name cannot be reused.
    Gone = 20,
    /// The id was used for something else before.
    IdReused = 21,
    /// The requested data was trimmed.
    Trimmed = 22,
    /// A single turn of a conversation is larger than the budget.
    OverBudget = 23,
    /// Another node leads what the request is for.
    Moved = 24,
    /// The lease of a message has ended.
    LeaseExpired = 25,
}

impl ErrorCode {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 25] = [
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
        Self::Moved,
        Self::LeaseExpired,
    ];

    /// Returns the code with this number.
    pub fn from_u16(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns the number that is used on the wire.
    pub const fn as_u16(self) -> u16 {
        self as u16
    }

    /// Returns the name, for people and programs.
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
            Self::Moved => "moved",
            Self::LeaseExpired => "lease_expired",
        }
    }

    /// Describes the cause of this code.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::NoResponder => "the name has no subscriber; answered at once",
            Self::UnknownMethod => "the responder has no handler for the method; answered at once",
            Self::Busy => {
                "a window is full: the caller's own, or that of every instance of the responder"
            }
            Self::Throttled => "a limit covers the sender; `retry_after` says when it refills",
            Self::TooLarge => "the frame is larger than the receiver's `frame_size_max`",
            Self::Denied => "the token lacks the permission for this operation",
            Self::Cancelled => "the caller dropped the call or cancelled it",
            Self::DeadlineExceeded => {
                "the deadline passed in a queue, on the way or in the handler"
            }
            Self::Unconfirmed => "the connection was lost after the request may have been sent",
            Self::HandlerError => "the handler ran and answered with its own error",
            Self::InvalidArgument => "a name, an option or a body is invalid",
            Self::Unauthenticated => "the token is missing, unknown or revoked",
            Self::Unsupported => "the version, feature or durability is not supported here",
            Self::Unavailable => "there is no connection, or the node is draining",
            Self::Protocol => "the peer violated the protocol",
            Self::Internal => "a bug; see the log of the side that raised it",
            Self::Replaced => "the same instance subscribed again from another connection",
            Self::Conflict => {
                "the stream does not end at the expected offset, because others appended"
            }
            Self::NotFound => "nothing with this name exists",
            Self::Gone => "the named object was erased; its name cannot be reused",
            Self::IdReused => "the id was used for something else before",
            Self::Trimmed => "the requested data was trimmed",
            Self::OverBudget => "a single turn of the conversation is larger than the budget",
            Self::Moved => "another node of the cluster leads what the request is for",
            Self::LeaseExpired => {
                "the lease of the message ran out or was answered before: nothing was changed"
            }
        }
    }

    /// Returns the sides that answer with this code.
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
            | Self::OverBudget
            | Self::Moved
            | Self::LeaseExpired => "node",
            Self::UnknownMethod | Self::HandlerError => "responder",
            Self::Unconfirmed | Self::Cancelled | Self::DeadlineExceeded => "client or node",
            Self::Busy | Self::TooLarge | Self::InvalidArgument => "client, node or responder",
            Self::Unauthenticated | Self::Unsupported => "node or responder",
            Self::Unavailable => "client or node",
            Self::Protocol | Self::Internal => "any side",
        }
    }

    /// Returns whether the operation may have been executed.
    pub const fn executed(self) -> Executed {
        match self {
            Self::HandlerError => Executed::Yes,
            Self::Cancelled | Self::DeadlineExceeded | Self::Unconfirmed | Self::Internal => {
                Executed::Unknown
            }
            _ => Executed::No,
        }
    }

    /// Returns whether the operation may be retried.
    pub const fn retry(self) -> Retry {
        match self {
            Self::NoResponder | Self::Busy | Self::Throttled | Self::Unavailable | Self::Moved => {
                Retry::Safe
            }
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
            | Self::OverBudget
            | Self::LeaseExpired => Retry::Never,
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
    fn numbers_and_names_map_back_to_their_code() {
        for (index, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(code.as_u16()), index + 1);
            assert_eq!(ErrorCode::from_u16(code.as_u16()), Some(code));
            assert_eq!(code.as_str().parse(), Ok(code));
        }
        assert_eq!(ErrorCode::from_u16(0), None);
        assert_eq!(ErrorCode::from_u16(26), None);
    }

    #[test]
    fn only_unexecuted_operations_are_safe_to_retry() {
        for code in ErrorCode::ALL {
            if code.retry() == Retry::Safe {
                assert_eq!(code.executed(), Executed::No, "{code}");
            }
        }
    }
}
