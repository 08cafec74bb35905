//! The state of a conversation apart from its messages.

use std::collections::BTreeMap;

use crate::context::Policy;
use crate::retracted::Retracted;

/// The state of a conversation apart from its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Number of records in the stream of messages before message 1.
    pub base: u64,
    /// Counts all changes except those of cursors; 0 if there were none.
    pub version: u64,
    /// The time of creation, in milliseconds since 1970-01-01 UTC; 0 if the first message created
    /// the conversation.
    pub created_ms: u64,
    /// Determines whether messages are accepted.
    pub lifecycle: Lifecycle,
    /// The origin of a copy.
    pub origin: Option<Origin>,
    /// The metadata, as opaque bytes.
    pub metadata: Vec<u8>,
    /// The owner's settings.
    pub settings: Settings,
    /// The summary that replaces older messages in a window.
    pub summary: Option<Summary>,
    /// The newest clear.
    pub cleared: Option<Cleared>,
    /// The numbers after the newest clear that have no message because of retractions.
    pub retracted: Retracted,
    /// The read positions of participants.
    pub cursors: Cursors,
}

/// A clear: all messages up to one were erased, and the numbers after it stay in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The last erased message.
    pub through_seq: u64,
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

impl State {
    /// Returns the last message that a clear erased; 0 for none.
    pub fn cleared_seq(&self) -> u64 {
        self.cleared.map_or(0, |cleared| cleared.through_seq)
    }

    /// Returns the time of the newest activity apart from messages: the creation, or the newest
    /// clear, in milliseconds since 1970-01-01 UTC; 0 for none.
    pub fn active_ms(&self) -> u64 {
        let cleared_ms = self.cleared.map_or(0, |cleared| cleared.at_ms);
        self.created_ms.max(cleared_ms)
    }
}

/// The lifecycle of a conversation, which determines whether it accepts messages.
///
/// `Copying => Open <=> Archived`, and each of them `=> Erased`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Lifecycle {
    /// Messages are accepted.
    #[default]
    Open = 0,
    /// Read only, except for drafts that were open already.
    Archived = 1,
    /// Being copied from another conversation, and not visible yet.
    Copying = 2,
    /// Erased permanently.
    Erased = 3,
}

impl Lifecycle {
    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        [Self::Open, Self::Archived, Self::Copying, Self::Erased]
            .into_iter()
            .find(|it| *it as u8 == number)
    }
}

/// The origin of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the original conversation.
    pub conversation: String,
    /// The last copied message.
    pub seq: u64,
}

/// The settings made by the owner of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Time after the last message until the conversation is erased, in milliseconds; 0 for never.
    pub ttl_ms: u64,
    /// Number of newest messages to retain, at least; 0 for all.
    pub keep_last: u64,
    /// Size of the newest messages to retain, at least, in bytes; 0 for all.
    pub keep_bytes: u64,
    /// The webhook that answers the conversation; empty for none.
    pub agent: String,
    /// The participants, including those without messages and cursors.
    pub participants: Vec<String>,
    /// The policy of its windows.
    pub context: Policy,
}

/// A summary, which replaces all messages up to one in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The last message that it covers.
    pub through_seq: u64,
    /// Its cost in tokens.
    pub tokens: u32,
    /// True if `tokens` is an estimate.
    pub is_estimated: bool,
    /// The summary message, as opaque bytes.
    pub message: Vec<u8>,
}

/// The read position of each participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursors(pub(crate) BTreeMap<Box<str>, u64>);

impl Cursors {
    /// Returns the last message that a participant has read.
    pub fn get(&self, who: &str) -> Option<u64> {
        self.0.get(who).copied()
    }

    /// Iterates over all cursors, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> + '_ {
        self.0.iter().map(|(who, seq)| (&**who, *seq))
    }

    pub(crate) fn set(&mut self, who: &str, seq: u64) {
        match self.0.get_mut(who) {
            Some(known) => *known = seq,
            None => {
                self.0.insert(who.into(), seq);
            }
        }
    }
}

/// A change of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A participant has read up to a message. Does nothing if the cursor is already at or after
    /// it.
    Cursor {
        /// The participant.
        who: String,
        /// The last message read.
        seq: u64,
    },
    /// The owner changed fields; `None` leaves a field unchanged. Creates the conversation if it
    /// does not exist.
    Put {
        /// The new metadata.
        metadata: Option<Vec<u8>>,
        /// The new settings.
        settings: Option<Settings>,
        /// Archives or reopens the conversation.
        is_archived: Option<bool>,
    },
    /// The summary changed or was removed.
    Summarize(Option<Summary>),
    /// Marks the conversation as a copy that was made outside this node. The origin is not checked.
    Descend(Origin),
    /// Creates the conversation as a copy whose messages follow.
    Copy {
        /// The origin of the copy.
        origin: Origin,
        /// The metadata.
        metadata: Vec<u8>,
        /// The settings.
        settings: Settings,
    },
    /// The copy is complete.
    Copied {
        /// The copied numbers whose messages were retracted in the original.
        retracted: Retracted,
    },
    /// All messages and the summary are erased; numbering continues after the newest message.
    Clear {
        /// The required number of the newest message.
        expect: Option<u64>,
    },
    /// The conversation is erased permanently.
    Erase,
}
