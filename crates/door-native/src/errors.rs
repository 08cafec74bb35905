//! Errors of the node as ERROR frames: one exhaustive match for each type.

use conversation_service::ConversationError;
use door::topics::Refused;
use messaging::mailboxes::WriteError;
use messaging::{MemoryWriteError, RequestError, SubscribeError};
use model::{ErrorCode, Failure};
use platform::NotDurable;
use quota_service::Throttled;
use store::{StorageError, StreamError};

/// Pause before retrying an operation for which no thread was free, in milliseconds.
const OVERLOADED_RETRY_MS: u32 = 500;

/// The answer to a request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorAnswer {
    pub(super) code: ErrorCode,
    message: String,
    /// True if the request may have been executed.
    sent: bool,
    retry_after_ms: u32,
    /// The number that belongs to the code.
    number: Option<u64>,
}

impl ErrorAnswer {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            sent: false,
            retry_after_ms: 0,
            number: None,
        }
    }

    /// Returns the error of an invalid request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    /// Returns the answer to a cancelled request that was being executed.
    pub(super) fn cancelled() -> Self {
        Self::new(ErrorCode::Cancelled, "cancelled by the caller").after_sending()
    }

    pub(super) fn after_sending(self) -> Self {
        Self { sent: true, ..self }
    }

    fn retry_after(self, retry_after_ms: u32) -> Self {
        Self {
            retry_after_ms,
            ..self
        }
    }

    fn with_number(self, number: Option<u64>) -> Self {
        Self { number, ..self }
    }

    /// Calls `send` with the failure.
    pub(super) fn with_failure<R>(&self, send: impl FnOnce(Failure<'_>) -> R) -> R {
        let details = self.number.map(u64::to_le_bytes);
        send(Failure {
            code: self.code,
            sent: self.sent,
            retry_after_ms: self.retry_after_ms,
            message: &self.message,
            details: details.as_ref().map_or(&[], |details| details),
        })
    }
}

impl From<NotDurable> for ErrorAnswer {
    fn from(error: NotDurable) -> Self {
        let answer = Self::new(error.code(), error.to_string());
        match error {
            NotDurable::Failed | NotDurable::Cut => answer.after_sending(),
            NotDurable::Moved => answer,
        }
    }
}

impl From<Throttled> for ErrorAnswer {
    fn from(throttled: Throttled) -> Self {
        Self::new(throttled.code(), throttled.message()).retry_after(throttled.retry_after_ms())
    }
}

impl From<RequestError> for ErrorAnswer {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Throttled(throttled) => throttled.into(),
            error => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<MemoryWriteError> for ErrorAnswer {
    fn from(error: MemoryWriteError) -> Self {
        match error {
            MemoryWriteError::Throttled(throttled) => throttled.into(),
            error => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<SubscribeError> for ErrorAnswer {
    fn from(error: SubscribeError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<StorageError> for ErrorAnswer {
    fn from(error: StorageError) -> Self {
        let answer = Self::new(error.code(), error.to_string());
        match error {
            StorageError::Overloaded(_) => answer.retry_after(OVERLOADED_RETRY_MS),
            StorageError::NotDurable(error) => error.into(),
            StorageError::Names { .. }
            | StorageError::TooLarge { .. }
            | StorageError::Conflict { .. }
            | StorageError::QueueFull
            | StorageError::DiskFull
            | StorageError::Failed { .. }
            | StorageError::Unreadable { .. } => answer,
        }
    }
}

impl From<WriteError> for ErrorAnswer {
    fn from(error: WriteError) -> Self {
        let retry_after_ms = error.retry_after_ms();
        match error {
            WriteError::Throttled(throttled) => throttled.into(),
            WriteError::Storage(error) => error.into(),
            error => Self::new(error.code(), error.to_string()).retry_after(retry_after_ms),
        }
    }
}

impl From<StreamError> for ErrorAnswer {
    fn from(error: StreamError) -> Self {
        let number = match error {
            StreamError::Storage(error) => return error.into(),
            StreamError::Conflict { next } => Some(next),
            StreamError::Trimmed { start } => Some(start),
            StreamError::NoStorage | StreamError::NoRecords | StreamError::Followers => None,
        };
        Self::new(error.code(), error.to_string()).with_number(number)
    }
}

impl From<ConversationError> for ErrorAnswer {
    fn from(error: ConversationError) -> Self {
        let (code, details) = (error.code(), error.details());
        let number = match code {
            ErrorCode::Conflict => details.head_seq.or(details.version),
            ErrorCode::IdReused => details.seq,
            ErrorCode::Trimmed => details.start_seq,
            ErrorCode::InvalidArgument => details.head_seq,
            _ => None,
        };
        let answer = Self::new(code, error.to_string()).with_number(number);
        match code {
            ErrorCode::Unconfirmed => answer.after_sending(),
            _ => answer,
        }
    }
}

impl From<Refused> for ErrorAnswer {
    fn from(refused: Refused) -> Self {
        let number = refused.numbers.first().map(|(_, number)| *number);
        Self::new(refused.code, refused.message).with_number(number)
    }
}
