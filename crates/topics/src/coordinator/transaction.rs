//! The state of one transaction and its transitions.

use std::collections::BTreeSet;

use crate::ids::{NO_EPOCH, ProducerId, TopicId};
use crate::partition::Ending;

/// A participant of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Participant {
    /// A partition.
    Partition {
        /// The topic.
        topic: TopicId,
        /// The index of the partition, from 0.
        index: u32,
    },
    /// The offsets of a consumer group.
    Group(String),
}

/// The state of a transaction. Numbers and names are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// No participant was added yet.
    Empty = 0,
    /// The transaction has participants.
    Ongoing = 1,
    /// The transaction will be committed.
    PrepareCommit = 2,
    /// The transaction will be aborted.
    PrepareAbort = 3,
    /// All participants have committed it.
    CompleteCommit = 4,
    /// All participants have aborted it.
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

    /// Returns the state of this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// Returns the name that Kafka's tools show.
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

    /// Returns how a prepared transaction ends.
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

/// The state of a `transactional.id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The `transactional.id`.
    pub name: String,
    /// The producer id.
    pub producer: ProducerId,
    /// The producer epoch.
    pub epoch: i16,
    /// The previous producer id, if its epochs were used up.
    pub last_producer: Option<ProducerId>,
    /// The epoch that the producer stated when it got the present one; -1 if it stated none.
    pub last_epoch: i16,
    /// The transaction timeout, in milliseconds.
    pub timeout_ms: i32,
    /// The state.
    pub state: State,
    /// The participants.
    pub participants: BTreeSet<Participant>,
    /// When the first participant was added, in milliseconds since 1970-01-01 UTC; -1 for none.
    pub started_ms: i64,
    /// When it was last changed, in milliseconds since 1970-01-01 UTC.
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

    /// Returns it prepared to be aborted in the next epoch, so that its producer is fenced.
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
