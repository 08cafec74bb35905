//! Lists of conversations, in pages.
//!
//! A page continues after the position of the last conversation of the previous page. A
//! conversation that gets a message meanwhile moves to the front and never backwards. So no
//! conversation is returned twice, and unchanged ones are not skipped.

use std::fmt;
use std::str::FromStr;

use conversations::State;

use super::entry::{self, ArchiveState};
use super::journal::VisibleConversation;
use super::scope::Scope;
use super::service::Views;
use super::walk::{Walk, WalkError};
use crate::error::ViewsError;

/// A filter by archived state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// Only conversations that are not archived.
    #[default]
    No,
    /// Only archived conversations.
    Yes,
    /// All conversations.
    Any,
}

impl Archived {
    pub(super) fn archive_states(self) -> &'static [ArchiveState] {
        match self {
            Self::No => &[ArchiveState::Open],
            Self::Yes => &[ArchiveState::Archived],
            Self::Any => &[ArchiveState::Open, ArchiveState::Archived],
        }
    }
}

/// The end of a page. As a text: `ACTIVITY_MS-NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub(super) entry::ActivityPosition);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.activity_ms, self.0.number)
    }
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: use the `next` of a page")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (activity_ms, number) = text.split_once('-').ok_or(NoCursor)?;
        Ok(Self(entry::ActivityPosition {
            activity_ms: activity_ms.parse().map_err(|_| NoCursor)?,
            number: number.parse().map_err(|_| NoCursor)?,
        }))
    }
}

/// A query for a page.
#[derive(Clone, Copy, Debug)]
pub struct ListQuery<'a> {
    /// Labels that the metadata must have, all of them.
    pub labels: &'a [(String, String)],
    /// The filter by archived state.
    pub archived: Archived,
    /// The end of the previous page.
    pub after: Option<Cursor>,
    /// Maximum number of conversations, from 1 to 1,000.
    pub limit: usize,
}

/// A conversation in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// `org/namespace/x`.
    pub name: String,
    /// The newest message; 0 for none.
    pub head_seq: u64,
    /// The oldest retained message; one above the newest if there is none.
    pub start_seq: u64,
    /// The time of the newest message, or of the creation, in milliseconds since 1970-01-01 UTC.
    pub active_ms: u64,
    /// The state apart from the messages.
    pub state: State,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The conversations, ordered by activity, newest first.
    pub conversations: Vec<Listed>,
    /// The cursor of the next page, if there may be one.
    pub next: Option<Cursor>,
}

impl Views {
    /// Returns the conversations of `org/namespace`, newest activity first.
    pub fn list(&self, namespace: &str, query: ListQuery<'_>) -> Result<Listing, ViewsError> {
        let tables = self.catch_up()?;
        let namespace = Scope::namespace(namespace);
        let labels = query.labels.iter();
        let labels: Vec<_> = labels
            .map(|(key, value)| namespace.label(key, value))
            .collect();
        let walk = Walk {
            tables: &tables,
            scope: labels.first().copied().unwrap_or(namespace),
            archive_states: query.archived.archive_states(),
            now_ms: self.platform.expiry_ms(),
            after: query.after,
            limit: query.limit,
        };
        let source = self.source();
        let walked = walk.collect(|place, row| {
            if !labels.iter().all(|it| row.labels.contains(it)) {
                return Ok(None);
            }
            // A conversation that was erased meanwhile is skipped.
            let conversation = source.visible_conversation(place.number)?;
            Ok(conversation.map(|conversation| listed(conversation, row.activity_ms)))
        });
        let (conversations, next) = self.walked(walked)?;
        Ok(Listing {
            conversations,
            next,
        })
    }

    /// Returns the result of a walk; on damage, closes the tables.
    pub(super) fn walked<T>(&self, walked: Result<T, WalkError>) -> Result<T, ViewsError> {
        walked.map_err(|error| match error {
            WalkError::Damage(damage) => self.fail(&mut self.state.opened.lock(), &damage.into()),
            WalkError::Read(error) => error.into(),
        })
    }
}

fn listed(conversation: VisibleConversation, active_ms: u64) -> Listed {
    let VisibleConversation {
        name,
        state,
        start,
        head,
    } = conversation;
    Listed {
        name,
        head_seq: head,
        start_seq: state.retracted.next_live(start),
        active_ms,
        state,
    }
}
