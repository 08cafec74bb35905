//! Followers of streams, which are sent records as they become durable, within their credit.
//!
//! The followers of a connection belong to its reading task. They share one bell, which rings when
//! one of their streams grows.

use std::sync::Arc;
use std::task::Waker;

use journal::{Follow, Following, Health, Journal, ShardId, StreamId};
use model::{ErrorCode, Name};
use routing::Ticket;

use super::raw::{Range, Read, Refusal};
use super::reads::{Pending, UNREAD_SIZE_MAX};
use super::restore::Reach;
use super::{Location, Store, directory};
use crate::bell::Bell;
use crate::conversations::PendingPage;
use crate::counters::Counter;
use crate::ports::Failure;
use crate::turn::Turn;

/// Number of items sent ahead of returned credit.
const WINDOW: u32 = 64;

/// Maximum number of followed streams per connection.
const FOLLOWERS_MAX: usize = 1_024;

/// The followers of a connection.
#[derive(Default)]
pub(crate) struct Followers {
    list: Vec<Follower>,
    bell: Option<Arc<Bell>>,
}

pub(crate) struct Follower {
    pub(crate) tag: Ticket,
    pub(crate) name: Name,
    /// True for a conversation, false for a raw stream.
    is_conversation: bool,
    pub(crate) range: Range,
    pub(crate) credit: u32,
    pub(crate) waiting: Option<Following>,
    /// The read in progress for a raw stream.
    reading: Option<Pending>,
    /// The read in progress for a conversation.
    pub(crate) page: Option<PendingPage>,
}

/// The result of serving a follower.
pub(crate) enum Look {
    /// The stream has no more records, or the follower has no credit.
    Rests,
    /// The client does not read.
    Unread,
    Ends(Refusal),
    /// The end of a conversation's follower.
    EndsConversation(crate::conversations::Refusal),
}

impl Followers {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Ends all followers.
    pub(crate) fn clear(&mut self, journal: &Journal) {
        for following in self.list.drain(..).filter_map(|it| it.waiting) {
            journal.unfollow(&following);
        }
    }

    fn position(&self, tag: Ticket) -> Option<usize> {
        self.list.iter().position(|follower| follower.tag == tag)
    }

    /// Marks all followers to be served.
    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.note();
        }
    }
}

impl Turn<'_> {
    /// Follows a stream: requests its records and future ones. They are sent after the turn, when
    /// the connection's task serves its followers.
    pub fn follow(&mut self, route: u16, tag: Ticket, range: Range) {
        let is_conversation = self.is_conversation(route);
        let found = match is_conversation {
            true => self.conversation(route).cloned(),
            false => self.stream(route).map(|(_, name)| name.clone()),
        };
        let name = match found {
            Ok(name) => name,
            Err(refusal) => return self.refuse_stream(tag, &refusal),
        };
        let followers = &mut self.local.followers;
        if followers.list.len() >= FOLLOWERS_MAX {
            let message =
                format!("too many followed streams on this connection (limit {FOLLOWERS_MAX})");
            return self.fail(tag, Failure::new(ErrorCode::Busy, &message));
        }
        followers.list.push(Follower {
            tag,
            name,
            is_conversation,
            range,
            credit: WINDOW,
            waiting: None,
            reading: None,
            page: None,
        });
        followers.ring();
    }

    /// Ends a follower for the client. Returns false if the tag is not a follower's.
    pub(crate) fn unfollow(&mut self, tag: Ticket) -> bool {
        let Some(place) = self.local.followers.position(tag) else {
            return false;
        };
        let follower = self.local.followers.list.swap_remove(place);
        if let (Some(store), Some(following)) = (&self.inner.store, follower.waiting) {
            store.journal.unfollow(&following);
        }
        let message = "cancelled by the caller";
        self.fail(
            tag,
            Failure::new(ErrorCode::Cancelled, message).after_sending(),
        );
        true
    }

    /// Adds credit to a follower. Returns false if the tag is not a follower's.
    pub(crate) fn follower_credit(&mut self, tag: Ticket, items: u32) -> bool {
        let followers = &mut self.local.followers;
        let Some(place) = followers.position(tag) else {
            return false;
        };
        let follower = &mut followers.list[place];
        follower.credit = follower.credit.saturating_add(items).min(WINDOW);
        followers.ring();
        true
    }

    /// Sends new records to every follower if the bell has rung. Returns true if output has to wait
    /// because the client leaves too much unread.
    pub(crate) fn look_after_followers(&mut self, store: &Store, task: &Waker) -> bool {
        let bell = self.local.followers.bell.get_or_insert_with(Bell::rung);
        bell.listen(task);
        if !bell.has_rung() {
            return false;
        }
        let waker = Waker::from(bell.clone());
        let mut is_unread = false;
        let mut followers = std::mem::take(&mut self.local.followers.list);
        followers.retain_mut(|follower| match self.look_after(store, follower, &waker) {
            Look::Rests => true,
            Look::Unread => {
                is_unread = true;
                true
            }
            Look::Ends(refusal) => {
                self.refuse_stream(follower.tag, &refusal);
                false
            }
            Look::EndsConversation(refusal) => {
                self.refuse_messages(follower.tag, &refusal);
                false
            }
        });
        self.local.followers.list = followers;
        if is_unread {
            self.local.followers.ring();
        }
        is_unread
    }

    fn look_after(&mut self, store: &Store, follower: &mut Follower, waker: &Waker) -> Look {
        if let Some(following) = follower.waiting.take() {
            // The registration may still be active.
            store.journal.unfollow(&following);
        }
        if follower.is_conversation {
            return self.look_after_messages(store, follower, waker);
        }
        while follower.credit > 0 {
            if self.peer.outlet.queued_size() > UNREAD_SIZE_MAX {
                return Look::Unread;
            }
            // Read before the name is looked up, so that a stream created afterwards is not missed.
            let made = store.stream_count() as u64;
            let location = store.readable(&follower.name);
            let read = match self.read_for(store, follower, location, waker) {
                Ok(Some(read)) => read,
                Ok(None) => return Look::Rests,
                Err(refusal) => return Look::Ends(refusal),
            };
            if let Some(last) = read.0.records.last() {
                follower.range.from = last.offset + 1;
                follower.credit -= 1;
                self.local.tally.count(Counter::Items);
                let parts = read.outgoing(follower.tag, true);
                self.answer(parts.as_outgoing());
                continue;
            }
            let (shard, stream, from) = match location {
                Some(location) => (location.shard, location.stream, follower.range.from),
                None => (directory::SHARD, directory::STREAM, made),
            };
            match wait(&store.journal, shard, stream, from, waker) {
                Ok(Some(following)) => {
                    follower.waiting = Some(following);
                    return Look::Rests;
                }
                Ok(None) => {}
                Err(refusal) => return Look::Ends(refusal),
            }
        }
        Look::Rests
    }
}

impl Turn<'_> {
    /// Returns the next records for a follower; `None` until they have been read from the disk.
    fn read_for(
        &self,
        store: &Store,
        follower: &mut Follower,
        location: Option<Location>,
        waker: &Waker,
    ) -> Result<Option<Read>, Refusal> {
        let pending = match follower.reading.take() {
            Some(pending) => pending,
            None => match store.read(Reach::Memory, location, follower.range)? {
                Some(read) => return Ok(Some(read)),
                None => self.inner.read_offloaded(location, follower.range)?,
            },
        };
        match pending.take(waker) {
            Some(read) => read,
            None => {
                follower.reading = Some(pending);
                Ok(None)
            }
        }
    }
}

/// Registers the waker for growth of the stream; `None` if it has grown already.
fn wait(
    journal: &Journal,
    shard: ShardId,
    stream: StreamId,
    from: u64,
    waker: &Waker,
) -> Result<Option<Following>, Refusal> {
    if let Health::Failed { reason } = journal.health() {
        let message = format!("the journal has failed: {reason}");
        return Err((ErrorCode::Unavailable, message).into());
    }
    match journal.follow(shard, stream, from, waker) {
        Follow::Waiting(following) => Ok(Some(following)),
        Follow::Ready => Ok(None),
        Follow::Refused => {
            let message = "too many followers of streams on this node".to_owned();
            Err((ErrorCode::Busy, message).into())
        }
    }
}
