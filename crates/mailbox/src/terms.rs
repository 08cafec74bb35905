//! What is asked of a mailbox, and what it says.

use crate::ids::WriteId;

/// What a mailbox holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unacknowledged messages.
    pub messages_max: usize,
    /// Their bytes, as the shell counts them.
    pub bytes_max: u64,
    /// Messages that are handed out at the same time.
    pub in_flight_max: usize,
    /// Deliveries after which a message that nobody acknowledged is a dead letter; 0 for as many as
    /// it takes.
    pub deliveries_max: u32,
}

/// A message that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<'a> {
    /// Where; above every earlier one.
    pub offset: u64,
    /// What the writer calls it.
    pub id: Option<WriteId>,
    /// Who wrote it.
    pub sender: &'a str,
    /// Its size against the limit.
    pub size: u32,
    /// When it is given up.
    pub expires_ms: u64,
}

/// A write may go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Append it, and say [`Mailbox::written`](crate::Mailbox::written).
    New,
    /// It is there already, or was.
    Duplicate {
        /// The offset of the original.
        offset: u64,
    },
}

/// A write may not go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There are too many messages.
    #[error("the mailbox holds {messages} unacknowledged messages, its limit")]
    Messages {
        /// As many.
        messages: usize,
    },
    /// They are too large together.
    #[error("{size} more bytes do not fit into the mailbox: {bytes} of {bytes_max} are taken")]
    Bytes {
        /// What was to be written.
        size: u32,
        /// What is there.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
}

/// A message that is to be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a, S> {
    /// Which one.
    pub offset: u64,
    /// Where its bytes are: the offset of its newest record.
    pub record: u64,
    /// How often it is handed out with this time.
    pub delivery: u32,
    /// To whom.
    pub place: Place<'a, S>,
}

/// Who may get a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a, S> {
    /// Anybody.
    Any,
    /// Nobody but this one: an earlier message of the same sender is with it.
    Only(&'a S),
    /// Somebody else than this one, if there is: it has not answered.
    Other(&'a S),
}

/// What became of an [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<S> {
    /// It was handed to this one, who will answer, fail or be lost.
    Handed(S),
    /// The only one who may get it has no room.
    Full,
    /// Nobody has room, or nobody is there, or the message cannot be read now.
    Nobody,
}

/// When a message that was not acknowledged is handed out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// At once: whoever had it is gone or silent.
    Now,
    /// Later, with a pause that grows: it was refused.
    Later,
    /// After this long: whoever refused it said so.
    After {
        /// Milliseconds.
        pause_ms: u64,
    },
}

/// A message of the mailbox, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// Which one.
    pub offset: u64,
    /// Where its bytes are.
    pub record: u64,
    /// Who wrote it.
    pub sender: &'a str,
    /// How often it was handed out.
    pub deliveries: u32,
    /// When it is given up.
    pub expires_ms: u64,
    /// What it waits for.
    pub state: State,
}

/// What a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// To be on disk.
    Unsynced,
    /// Somebody with room for it.
    Waiting,
    /// The answer of whom it was handed to.
    Unanswered,
    /// The end of a pause.
    Paused {
        /// When that is.
        until_ms: u64,
    },
    /// Somebody who acknowledges it by hand or gives it back: it is a dead letter.
    Dead(Cause),
}

/// How the last delivery of a dead letter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Whoever had it said no.
    Refused,
    /// Whoever had it was lost or silent.
    Unanswered,
}

/// A message that keeps what lies behind it on disk, and is worth writing once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// Which one.
    pub offset: u64,
    /// Where its bytes are now.
    pub record: u64,
    /// What is to be kept of it.
    pub standing: Standing,
}

/// How a message stands, as its records say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How often it was handed out.
    pub deliveries: u32,
    /// How many of those were before it was given back.
    pub forgiven: u32,
    /// Why it is a dead letter, if it is one.
    pub dead: Option<Cause>,
}
