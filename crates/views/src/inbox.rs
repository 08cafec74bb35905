//! Inboxes: the conversations of a participant, with the number of unread messages in each.

use ::conversations::record::{self, Malformed, MessageView};
use ::journal::{ReadError, ReadLimit, StreamId};
use bytes::Bytes;
use store::Kind;

use super::entry::Row;
use super::list::{Archived, Cursor};
use super::scope::Scope;
use super::service::Views;
use super::tables::Tables;
use super::walk::{Walk, WalkError};
use crate::error::ViewsError;

/// A query for a page of an inbox.
#[derive(Clone, Copy, Debug)]
pub struct InboxQuery<'a> {
    /// The participant.
    pub who: &'a str,
    /// The filter by archived state.
    pub archived: Archived,
    /// Return only conversations with unread messages.
    pub unread_only: bool,
    /// The end of the previous page.
    pub after: Option<Cursor>,
    /// Maximum number of conversations, from 1 to 1,000.
    pub limit: usize,
}

/// A conversation in an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// `org/namespace/x`.
    pub name: String,
    /// The newest message; 0 for none.
    pub head_seq: u64,
    /// The last message that the participant read.
    pub read_seq: u64,
    /// Number of unread messages of others.
    pub unread: u64,
    /// The time of the newest message, in milliseconds since 1970-01-01 UTC.
    pub active_ms: u64,
    /// The newest message, if it is retained and readable.
    pub last: Option<Last>,
}

/// The newest message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Last {
    /// The time of the append, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    record: Bytes,
}

impl Last {
    /// Decodes the message.
    pub fn view(&self) -> Result<MessageView<'_>, Malformed> {
        MessageView::decode(&self.record)
    }
}

/// A page of an inbox.
#[derive(Clone, Debug)]
pub struct Inbox {
    /// The conversations, ordered by activity, newest first.
    pub lines: Vec<Line>,
    /// The cursor of the next page, if there may be one.
    pub next: Option<Cursor>,
}

impl Views {
    /// Returns a page of an inbox in `org/namespace`.
    pub fn inbox(&self, namespace: &str, query: InboxQuery<'_>) -> Result<Inbox, ViewsError> {
        let tables = self.catch_up()?;
        let scope = Scope::namespace(namespace).participant(query.who);
        let walk = Walk {
            tables: &tables,
            scope,
            archive_states: query.archived.archive_states(),
            now_ms: self.platform.expiry_ms(),
            after: query.after,
            limit: query.limit,
        };
        let walked = walk.collect(|place, row| {
            let line = self.line(&tables, scope, place.number, &row)?;
            Ok(line.filter(|it| it.unread > 0 || !query.unread_only))
        });
        let (lines, next) = self.walked(walked)?;
        Ok(Inbox { lines, next })
    }

    /// Returns a conversation as a line of the inbox of a scope.
    pub(super) fn line(
        &self,
        tables: &Tables,
        scope: Scope,
        number: u64,
        row: &Row,
    ) -> Result<Option<Line>, WalkError> {
        let Some(participant) = tables.participant(number, scope)? else {
            return Ok(None);
        };
        let Some((Kind::Conversation, name, at)) = self.store.named(StreamId(number)) else {
            return Ok(None);
        };
        let journal = &self.store.journal;
        let kept = journal.stream(at.shard, at.stream);
        let start = kept.map_or(1, |it| (it.start + 1).saturating_sub(row.base).max(1));
        let newest = row.retracted.newest_live(row.head);
        let offset = (newest + row.base).saturating_sub(1);
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let last = match start <= newest {
            true => journal.read(at.shard, at.stream, offset, one),
            false => Err(ReadError::Trimmed { start }),
        };
        // A conversation is listed even if its newest message is unreadable.
        let last = last.ok().and_then(|read| read.records.into_iter().next());
        Ok(Some(Line {
            name,
            head_seq: row.head,
            read_seq: participant.read,
            unread: participant.unread(start, row),
            active_ms: row.activity_ms,
            // A retraction that was not processed yet is no message.
            last: last
                .filter(|it| it.offset == offset && record::retraction(&it.payload).is_none())
                .map(|it| Last {
                    at_ms: it.time_ms,
                    record: it.payload,
                }),
        }))
    }
}
