//! What there is to a conversation besides its messages.

use std::collections::BTreeMap;

use crate::context::Policy;

/// Everything besides the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Records in the stream of messages before message 1.
    pub base: u64,
    /// Counts the changes of all but the cursors; 0 when there was none.
    pub version: u64,
    /// When it was created, in milliseconds since 1970-01-01 UTC; 0 when that is the time of its
    /// first message.
    pub created_ms: u64,
    /// Whether it takes messages.
    pub lifecycle: Lifecycle,
    /// What it was copied from.
    pub origin: Option<Origin>,
    /// Opaque.
    pub metadata: Vec<u8>,
    /// What its owner chose.
    pub settings: Settings,
    /// What stands for its older messages in a window.
    pub summary: Option<Summary>,
    /// How far its participants have read.
    pub cursors: Cursors,
}

/// Whether a conversation takes messages.
///
/// `Copying => Open <=> Archived`, and each of them `=> Erased`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Lifecycle {
    /// It does.
    #[default]
    Open = 0,
    /// It is read only, but for drafts that were open.
    Archived = 1,
    /// It is being copied from another and not yet to be seen.
    Copying = 2,
    /// It is gone, for ever.
    Erased = 3,
}

impl Lifecycle {
    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        [Self::Open, Self::Archived, Self::Copying, Self::Erased]
            .into_iter()
            .find(|it| *it as u8 == number)
    }
}

/// Where a fork comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the other conversation.
    pub conversation: String,
    /// Its last message that was copied.
    pub seq: u64,
}

/// What the owner of a conversation chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// It is erased that long after its last message, in milliseconds; 0 for never.
    pub ttl_ms: u64,
    /// So many of its newest messages are kept, and not many more; 0 for all of them.
    pub keep_last: u64,
    /// So many bytes of its newest messages are kept, and not many more; 0 for all of them.
    pub keep_bytes: u64,
    /// The webhook that answers it, empty for none.
    pub agent: String,
    /// Who takes part, whether he wrote or read anything or not.
    pub participants: Vec<String>,
    /// How its windows are cut.
    pub context: Policy,
}

/// What stands in a window for everything up to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The last message that it stands for.
    pub through_seq: u64,
    /// What it costs a model.
    pub tokens: u32,
    /// Whether that is an estimate.
    pub is_estimated: bool,
    /// Opaque.
    pub message: Vec<u8>,
}

/// How far each participant has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursors(pub(crate) BTreeMap<Box<str>, u64>);

impl Cursors {
    /// The last message that a participant has read.
    pub fn get(&self, who: &str) -> Option<u64> {
        self.0.get(who).copied()
    }

    /// All of them, by name.
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
    /// A participant has read up to a message. A cursor that is there already stays.
    Cursor {
        /// Who.
        who: String,
        /// Up to which message.
        seq: u64,
    },
    /// The owner chose; what is `None` stays. It creates a conversation that is not there.
    Put {
        /// Replaces the metadata.
        metadata: Option<Vec<u8>>,
        /// Replaces the settings.
        settings: Option<Settings>,
        /// Archives it, or opens it again.
        is_archived: Option<bool>,
    },
    /// Something stands for older messages from now on, or nothing does.
    Summarize(Option<Summary>),
    /// It is known to be a copy, made elsewhere. What it comes from is not looked at.
    Descend(Origin),
    /// It is made as a copy, of which messages follow.
    Copy {
        /// Where they come from.
        origin: Origin,
        /// Its metadata.
        metadata: Vec<u8>,
        /// Its settings.
        settings: Settings,
    },
    /// The copy is complete.
    Copied,
    /// It is gone, for ever.
    Erase,
}
