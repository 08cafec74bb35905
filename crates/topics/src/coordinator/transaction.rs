//! One transaction, and how it goes on.

use std::collections::BTreeSet;

use crate::ids::{NO_EPOCH, ProducerId, TopicId};
use crate::partition::Ending;

/// Who takes part in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Participant {
    /// A partition.
    Partition {
        /// Of which topic.
        topic: TopicId,
        /// Which one, from 0.
        index: u32,
    },
    /// The offsets of a consumer group.
    Group(String),
}

/// How far a transaction is. The numbers and names are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// There has been none yet.
    Empty = 0,
    /// It has participants.
    Ongoing = 1,
    /// It will be committed whatever happens.
    PrepareCommit = 2,
    /// It will be aborted whatever happens.
    PrepareAbort = 3,
    /// It was committed everywhere.
    CompleteCommit = 4,
    /// It was aborted everywhere.
    CompleteAbort = 5,
}

impl State {
    const ALL: [Self; 6] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
    ];

    /// The state of that number.
    pub fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// As tools show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// How it is being ended.
    pub fn ending(self) -> Option<Ending> {
        match self {
            Self::PrepareCommit => Some(Ending::Commit),
            Self::PrepareAbort => Some(Ending::Abort),
            _ => None,
        }
    }

    pub(super) fn is_idle(self) -> bool {
        matches!(
            self,
            Self::Empty | Self::CompleteCommit | Self::CompleteAbort
        )
    }
}

/// What is known of a `transactional.id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The `transactional.id`.
    pub name: String,
    /// Who has it.
    pub producer: ProducerId,
    /// In which epoch.
    pub epoch: i16,
    /// Who had it before its epochs were used up.
    pub last_producer: Option<ProducerId>,
    /// In which epoch it was asked for by whoever has it; -1 if that did not matter.
    pub last_epoch: i16,
    /// How long it may take.
    pub timeout_ms: i32,
    /// How far it is.
    pub state: State,
    /// Who takes part.
    pub participants: BTreeSet<Participant>,
    /// When its first participant was added; -1 for none.
    pub started_ms: i64,
    /// When it was last changed.
    pub updated_ms: i64,
}

pub(super) const NOT_STARTED: i64 = -1;

impl Transaction {
    pub(super) fn prepared(&self, ending: Ending, now_ms: i64) -> Self {
        Self {
            state: match ending {
                Ending::Commit => State::PrepareCommit,
                Ending::Abort => State::PrepareAbort,
            },
            updated_ms: now_ms,
            ..self.clone()
        }
    }

    /// To be aborted in the next epoch, so that its producer cannot go on.
    pub(super) fn fenced(&self, now_ms: i64) -> Self {
        Self {
            epoch: self.epoch.saturating_add(1),
            last_epoch: NO_EPOCH,
            ..self.prepared(Ending::Abort, now_ms)
        }
    }

    pub(super) fn completed(&self, ending: Ending, now_ms: i64) -> Self {
        Self {
            state: match ending {
                Ending::Commit => State::CompleteCommit,
                Ending::Abort => State::CompleteAbort,
            },
            participants: BTreeSet::new(),
            started_ms: NOT_STARTED,
            updated_ms: now_ms,
            ..self.clone()
        }
    }
}
