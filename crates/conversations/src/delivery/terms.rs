//! What is asked of an agent's deliveries, and what they say.

/// How an agent is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A call waits until nothing was said for so long.
    pub debounce_ms: u64,
    /// But no longer than this after the oldest message.
    pub max_wait_ms: u64,
    /// What a message does while a call is in flight.
    pub on_busy: OnBusy,
    /// Calls for the same messages; then they are a dead letter.
    pub attempts_max: u32,
    /// Pause after the first call that failed; doubled each time.
    pub pause_ms: u64,
    /// Longest pause.
    pub pause_ms_max: u64,
    /// Calls in flight, of all conversations.
    pub calls_max: u32,
    /// Conversations that wait or are called for.
    pub pending_max: u32,
    /// Dead letters. When there are so many, calls that fail are made again without end.
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

/// What a message does while a call for its conversation is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum OnBusy {
    /// It waits for the next one.
    #[default]
    Queue = 0,
    /// It ends the call, and another one is made for all of it; the fourth time it waits, so that
    /// there is an answer at last.
    Interrupt = 1,
    /// It is not let in ([`super::Deliveries::refuses`]). One that is in already waits.
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
    /// What for: the stream of its messages.
    pub conversation: u64,
    /// Which call, in memory.
    pub number: u64,
    /// The first message that was not answered.
    pub from_seq: u64,
    /// The newest one.
    pub to_seq: u64,
    /// How often it is made with this time, without those that were ended.
    pub attempt: u32,
    /// How many before it were ended by newer messages. Together with the conversation and
    /// `from_seq` it names the answer: the same in each attempt.
    pub interrupts: u32,
}

/// What the shell is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Call the agent.
    Call(Call),
    /// An agent that took a call and was to answer later has not: say [`super::Deliveries::failed`].
    Overdue {
        /// Of which conversation.
        conversation: u64,
        /// Which call.
        number: u64,
    },
}

/// A call that nobody waits for any more: end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which call.
    pub number: u64,
    /// To be kept.
    pub change: Change,
}

/// How a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For people: an HTTP status; 0 for none, as nobody was reached.
    pub status: u16,
    /// Whether it may be made again.
    pub again: Again,
}

/// See [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It makes no sense.
    Never,
    /// After a pause that grows.
    Later,
    /// The agent said when; not before the pause is over.
    After {
        /// Milliseconds.
        pause_ms: u64,
    },
}

/// What an agent was not able to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The first message.
    pub from_seq: u64,
    /// The last one.
    pub to_seq: u64,
    /// Calls that were made.
    pub attempts: u32,
    /// How the last one failed.
    pub status: u16,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// What happened, to be kept. Whoever reads it back stands where it was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Messages up to this one are answered.
    Answered {
        /// Of which conversation.
        conversation: u64,
        /// The last message.
        through_seq: u64,
    },
    /// A call has failed or was ended, and there will be another.
    Again {
        /// For which conversation.
        conversation: u64,
        /// Calls that failed so far.
        attempts: u32,
        /// Calls that were ended so far.
        interrupts: u32,
    },
    /// Messages up to its last one wait no more.
    Dead {
        /// Of which conversation.
        conversation: u64,
        /// What is listed of that conversation from now on.
        letter: DeadLetter,
    },
    /// A dead letter waits again.
    Revived {
        /// Of which conversation.
        conversation: u64,
    },
    /// A dead letter is not listed any more.
    Discarded {
        /// Of which conversation.
        conversation: u64,
    },
    /// A conversation is gone.
    Forgotten {
        /// Which one.
        conversation: u64,
    },
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many conversations wait: feed it later.
    #[error("{max} conversations wait for the agent, the limit")]
    Full {
        /// The limit.
        max: u32,
    },
    /// There is no such dead letter.
    #[error("there is no dead letter of that conversation")]
    Missing,
    /// A call is in flight: try again when it has ended.
    #[error("a call for that conversation is in flight")]
    Busy,
}
