//! Types of the interface of an agent's deliveries.

/// Options of an agent's deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A call is made once no message has arrived for this long.
    pub debounce_ms: u64,
    /// But no later than this after the oldest message.
    pub max_wait_ms: u64,
    /// The effect of a message that arrives during a call.
    pub on_busy: OnBusy,
    /// Maximum number of calls for the same messages; then they become a dead letter.
    pub attempts_max: u32,
    /// Pause after the first failed call; it doubles with each attempt.
    pub pause_ms: u64,
    /// Maximum pause.
    pub pause_ms_max: u64,
    /// Maximum number of calls in flight, over all conversations.
    pub calls_max: u32,
    /// Maximum number of conversations with pending messages.
    pub pending_max: u32,
    /// Maximum number of dead letters. If it is reached, failed calls are retried without end.
    pub dead_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            debounce_ms: 200,
            max_wait_ms: 2_000,
            on_busy: OnBusy::Queue,
            attempts_max: 10,
            pause_ms: 1_000,
            pause_ms_max: 600_000,
            calls_max: 64,
            pending_max: 100_000,
            dead_max: 10_000,
        }
    }
}

/// The effect of a message that arrives while a call for its conversation is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum OnBusy {
    /// The message waits for the next call.
    #[default]
    Queue = 0,
    /// The message interrupts the call, and a new call is made for all messages. After three
    /// interruptions it waits, so that an answer is given at last.
    Interrupt = 1,
    /// The message is refused ([`super::Deliveries::refuses`]). If it was already appended, it
    /// waits.
    Reject = 2,
}

impl OnBusy {
    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        [Self::Queue, Self::Interrupt, Self::Reject]
            .into_iter()
            .find(|it| *it as u8 == number)
    }
}

/// A call to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The conversation, as the stream of its messages.
    pub conversation: u64,
    /// The number of the call, valid until a restart.
    pub number: u64,
    /// The first unanswered message.
    pub from_seq: u64,
    /// The newest message.
    pub to_seq: u64,
    /// The number of the attempt, from 1; interrupted calls do not count.
    pub attempt: u32,
    /// The number of earlier calls that newer messages interrupted. Together with the conversation
    /// and `from_seq` it identifies the answer: it is the same in each attempt.
    pub interrupts: u32,
}

/// An action for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Call the agent.
    Call(Call),
    /// An agent that promised a later answer has not sent it: call [`super::Deliveries::failed`].
    Overdue {
        /// The conversation.
        conversation: u64,
        /// The number of the call.
        number: u64,
    },
}

/// An interrupted call, which the shell must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedCall {
    /// The number of the call.
    pub number: u64,
    /// The change to journal.
    pub change: Change,
}

/// The failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status, for display; 0 if the agent was not reached.
    pub status: u16,
    /// Permission and time of a retry.
    pub again: RetryAdvice,
}

/// Permission and time of the retry of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// A retry is useless.
    Never,
    /// After the growing pause.
    Later,
    /// After the time that the agent requested, but not before the growing pause is over.
    After {
        /// The requested pause in milliseconds.
        pause_ms: u64,
    },
}

/// Messages that an agent failed to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The first message.
    pub from_seq: u64,
    /// The last message.
    pub to_seq: u64,
    /// The number of calls made.
    pub attempts: u32,
    /// The HTTP status of the last failure; 0 if the agent was not reached.
    pub status: u16,
    /// The time of the last failure, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A change to journal. Applying the changes in order restores the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Messages up to `through_seq` were answered.
    Answered {
        /// The conversation.
        conversation: u64,
        /// The last answered message.
        through_seq: u64,
    },
    /// A call failed or was interrupted and will be repeated.
    Again {
        /// The conversation.
        conversation: u64,
        /// The number of failed calls so far.
        attempts: u32,
        /// The number of interrupted calls so far.
        interrupts: u32,
    },
    /// Messages up to the letter's last one became a dead letter.
    Dead {
        /// The conversation.
        conversation: u64,
        /// The dead letter of the conversation from now on.
        letter: DeadLetter,
    },
    /// The messages of a dead letter are pending again.
    Revived {
        /// The conversation.
        conversation: u64,
    },
    /// A dead letter was removed.
    Discarded {
        /// The conversation.
        conversation: u64,
    },
    /// The conversation was removed.
    Forgotten {
        /// The conversation.
        conversation: u64,
    },
}

/// The reason why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// Too many conversations have pending messages: feed the message later.
    #[error("too many conversations wait for the agent (limit {max})")]
    Full {
        /// The limit.
        max: u32,
    },
    /// The conversation has no dead letter.
    #[error("the conversation has no dead letter")]
    Missing,
    /// A call is in flight: retry once it has ended.
    #[error("a call for the conversation is in flight")]
    Busy,
}
