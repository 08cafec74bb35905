//! Lists of conversations, page by page.
//!
//! A page goes on behind the place of the last conversation of the page before. Whatever is written
//! to meanwhile moves to the front and not backwards, so nothing comes twice, and what nobody touched
//! is where it was.

use std::fmt;
use std::str::FromStr;

use conversations::State;

use super::Views;
use super::entry::{self, Shelf};
use super::journal::Standing;
use super::scope::Scope;
use super::walk::{Walk, WalkError};
use crate::conversations::Refusal;

/// Which ones by whether they are archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// Those that are not.
    #[default]
    No,
    /// Those that are.
    Yes,
    /// All.
    Any,
}

impl Archived {
    pub(super) fn shelves(self) -> &'static [Shelf] {
        match self {
            Self::No => &[Shelf::Open],
            Self::Yes => &[Shelf::Archived],
            Self::Any => &[Shelf::Open, Shelf::Archived],
        }
    }
}

/// Where a page ended. As text: `ACTIVITY_MS-NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub(super) entry::Place);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.activity_ms, self.0.number)
    }
}

/// Text that no page ended at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no page ended there: a cursor is taken from `next` of a page")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (activity_ms, number) = text.split_once('-').ok_or(NoCursor)?;
        Ok(Self(entry::Place {
            activity_ms: activity_ms.parse().map_err(|_| NoCursor)?,
            number: number.parse().map_err(|_| NoCursor)?,
        }))
    }
}

/// A page that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ListQuery<'a> {
    /// What their metadata has under which key, all of it.
    pub labels: &'a [(String, String)],
    /// Whether archived ones.
    pub archived: Archived,
    /// Where the page before ended.
    pub after: Option<Cursor>,
    /// How many, at most; from 1 to 1,000.
    pub limit: usize,
}

/// A conversation in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// `org/namespace/x`.
    pub name: String,
    /// The number of the newest message; 0 for none.
    pub head_seq: u64,
    /// The number of the oldest that is kept; one above the newest when none is.
    pub start_seq: u64,
    /// When something was said last, or when it was created, in milliseconds since 1970-01-01 UTC.
    pub active_ms: u64,
    /// Everything else.
    pub state: State,
}

/// A page.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The newest activity first.
    pub conversations: Vec<Listed>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}

impl Views<'_> {
    /// Conversations of `org/namespace`, the newest activity first.
    pub fn list(&self, namespace: &str, query: ListQuery<'_>) -> Result<Listing, Refusal> {
        let tables = self.catch_up()?;
        let namespace = Scope::namespace(namespace);
        let labels = query.labels.iter();
        let labels: Vec<_> = labels
            .map(|(key, value)| namespace.label(key, value))
            .collect();
        let walk = Walk {
            tables: &tables,
            scope: labels.first().copied().unwrap_or(namespace),
            shelves: query.archived.shelves(),
            now_ms: self.inner.expiry_ms(),
            after: query.after,
            limit: query.limit,
        };
        let source = self.source();
        let walked = walk.collect(|place, row| {
            if !labels.iter().all(|it| row.labels.contains(it)) {
                return Ok(None);
            }
            // Whatever was erased since is not there.
            let standing = source.standing(place.number)?;
            Ok(standing.map(|standing| listed(standing, row.activity_ms)))
        });
        let (conversations, next) = self.walked(walked)?;
        Ok(Listing {
            conversations,
            next,
        })
    }

    /// What a walk brought.
    pub(super) fn walked<T>(&self, walked: Result<T, WalkError>) -> Result<T, Refusal> {
        walked.map_err(|error| match error {
            WalkError::Damage(damage) => self.fail(&mut self.kept.opened.lock(), &damage.into()),
            WalkError::Read(error) => error.into(),
        })
    }
}

fn listed(standing: Standing, active_ms: u64) -> Listed {
    let Standing {
        name,
        state,
        start,
        head,
    } = standing;
    Listed {
        name,
        head_seq: head,
        start_seq: start,
        active_ms,
        state,
    }
}
