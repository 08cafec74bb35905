//! Conversations over a native connection: appends are answered in order, and a client follows
//! messages by credit.

use std::task::Waker;

use journal::{Guard, ReadLimit, Round, ShardId, Status};
use model::{ErrorCode, Name};
use quota::Unit;
use routing::Ticket;

use super::behind::{Behind, PendingPage};
use super::cold::elsewhere;
use super::write::Writer;
use super::{Appended, Batch, Conversations, Moment, Page, PageRead, Refusal, Side};
use crate::connection::Route;
use crate::counters::Counter;
use crate::ports::{Failure, Outgoing};
use crate::store::{self, Answer, Follower, Look, Range, Store, UNREAD_SIZE_MAX, Waiting};
use crate::turn::Turn;

impl Writer for Round {
    fn lock(&self, shard: ShardId, now_ms: u64) -> Guard<'_> {
        Self::lock(self, shard, now_ms)
    }
}

impl Refusal {
    /// Returns the failure that is sent to the client; `details` holds the number that belongs to
    /// the code.
    pub(crate) fn as_failure<'a>(&'a self, details: &'a mut [u8; 8]) -> Failure<'a> {
        let number = match self.code {
            ErrorCode::Conflict => self.details.head_seq.or(self.details.version),
            ErrorCode::IdReused => self.details.seq,
            ErrorCode::Trimmed => self.details.start_seq,
            ErrorCode::InvalidArgument => self.details.head_seq,
            _ => None,
        };
        let failure = Failure::new(self.code, &self.message);
        match number {
            Some(number) => {
                *details = number.to_le_bytes();
                Failure { details, ..failure }
            }
            None => failure,
        }
    }
}

impl<'a> Turn<'a> {
    /// Returns whether a route is bound to a conversation.
    pub fn is_conversation(&self, route: u16) -> bool {
        let route = self.local.routes.get(usize::from(route).wrapping_sub(1));
        matches!(route, Some(Route::Conversation { .. }))
    }

    /// Returns the conversation that a route is bound to.
    pub(crate) fn conversation(&self, route: u16) -> Result<&Name, store::Refusal> {
        match self.local.routes.get(usize::from(route).wrapping_sub(1)) {
            Some(Route::Conversation { name, .. }) => Ok(name),
            _ => {
                let message = format!("route {route} is not bound to a conversation");
                Err((ErrorCode::InvalidArgument, message).into())
            }
        }
    }

    fn conversations(&self) -> Result<Conversations<'a>, Refusal> {
        let inner = self.inner;
        match &inner.store {
            Some(store) => Ok(Conversations {
                inner,
                store,
                moment: None,
            }),
            None => {
                let message = "this node keeps nothing";
                Err(Refusal::new(ErrorCode::Unsupported, message))
            }
        }
    }

    /// Appends messages to the conversation of a route, all or none; acknowledged when durable.
    pub fn append_messages(&mut self, route: u16, tag: Ticket, batch: Batch<'_>) {
        if let Err(throttled) = self.admit(&[(Unit::APPENDED_BYTES, batch.size() as u64)]) {
            return self.fail(tag, throttled.as_failure());
        }
        match self.try_append_messages(route, tag, batch) {
            Ok(Some(waiting)) => self.local.answers.push(waiting, batch.size() as u64),
            Ok(None) => {}
            Err(refusal) => self.refuse_messages(tag, &refusal),
        }
    }

    /// Appends messages; `None` if another thread must do it.
    fn try_append_messages(
        &mut self,
        route: u16,
        tag: Ticket,
        batch: Batch<'_>,
    ) -> Result<Option<Waiting>, Refusal> {
        // The locks taken below come before the table's lock.
        self.table = None;
        let moment = Moment {
            now_ns: self.now_ns,
            unix_ms: self.unix_ms(),
        };
        let conversations = Conversations {
            moment: Some(moment),
            ..self.conversations()?
        };
        let journal = &conversations.store.journal;
        let local = &mut *self.local;
        let Some(Route::Conversation { name, slot }) =
            local.routes.get_mut(usize::from(route).wrapping_sub(1))
        else {
            let message = format!("route {route} is not bound to a conversation");
            return Err(Refusal::new(ErrorCode::InvalidArgument, message));
        };
        let round = local.round.get_or_insert_with(|| journal.round());
        let undurable = match !local.cold.has_appends() {
            true => conversations.append_by(name, slot, batch, round)?,
            false => None,
        };
        let Some(undurable) = undurable else {
            local.cold.push_append(tag, name.clone(), batch);
            return Ok(None);
        };
        undurable.count(&batch, |counter, count| local.tally.add(counter, count));
        Ok(Some(Waiting {
            tag,
            tickets: undurable.tickets,
            answer: answer_of(undurable.outcome),
            slot: None,
        }))
    }

    /// Reads durable messages; answered at once, or after they were read from the disk.
    pub(crate) fn read_messages(&mut self, route: u16, tag: Ticket, range: Range) {
        self.table = None;
        let sent = match self.read_at_hand(route, range) {
            Ok(Ok(Behind::Read(read))) => self.send_messages(tag, false, &read),
            Ok(Ok(Behind::Archived(page))) => {
                self.local.cold.push_archived(tag, page);
                Ok(())
            }
            Ok(Err(name)) => {
                self.local.cold.push_read(tag, name, range);
                Ok(())
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = sent {
            self.refuse_messages(tag, &refusal);
        }
    }

    /// Returns messages from memory, or the conversation's name if the disk is needed.
    fn read_at_hand(&self, route: u16, range: Range) -> Result<Result<Behind, Name>, Refusal> {
        let conversations = self.conversations()?;
        let name = self.conversation(route);
        let name = name.map_err(|refusal| Refusal::new(refusal.code, refusal.message))?;
        let (after, limit) = span(range);
        let read = conversations.read_behind_at_hand(name, after, limit)?;
        Ok(read.ok_or_else(|| name.clone()))
    }

    pub(crate) fn refuse_messages(&mut self, tag: Ticket, refusal: &Refusal) {
        let mut details = [0; 8];
        self.fail(tag, refusal.as_failure(&mut details));
    }

    pub(super) fn send_messages(
        &mut self,
        tag: Ticket,
        more: bool,
        read: &PageRead,
    ) -> Result<(), Refusal> {
        let messages = read.messages().collect::<Result<Vec<_>, _>>()?;
        self.answer(Outgoing::Messages {
            tag,
            more,
            start: read.start_seq,
            next: read.head_seq + 1,
            messages: &messages,
        });
        Ok(())
    }

    /// Sends a follower the messages that are available.
    pub(crate) fn look_after_messages(
        &mut self,
        store: &Store,
        follower: &mut Follower,
        waker: &Waker,
    ) -> Look {
        self.table = None;
        while follower.credit > 0 {
            if self.peer.outlet.queued_size() > UNREAD_SIZE_MAX {
                return Look::Unread;
            }
            match self.follow_on(store, follower, waker) {
                Ok(Followed::Sent) => {}
                Ok(Followed::Waits) => return Look::Rests,
                Err(refusal) => return Look::EndsConversation(refusal),
            }
        }
        Look::Rests
    }

    fn follow_on(
        &mut self,
        store: &Store,
        follower: &mut Follower,
        waker: &Waker,
    ) -> Result<Followed, Refusal> {
        let conversations = self.conversations()?;
        if let Some(page) = &mut follower.page {
            let Some(read) = page.take(waker) else {
                return Ok(Followed::Waits);
            };
            follower.page = None;
            return self.send_items(follower, &read?);
        }
        // Read before the name is looked up, so that a conversation that is created afterwards is
        // noticed.
        let made = store.stream_count() as u64;
        if !conversations.is_at_hand(&follower.name)? {
            follower.page = Some(self.read_elsewhere(follower));
            return Ok(Followed::Sent);
        }
        let place = match conversations.place(&follower.name) {
            Ok(place) => place,
            Err(refusal) if refusal.code == ErrorCode::NotFound => {
                follower.waiting = store.wait_for_name(made, waker)?;
                return Ok(Followed::or_sent(follower.waiting.is_some()));
            }
            Err(refusal) => return Err(refusal),
        };
        if let Some(entry) = store.creation(place.location.stream) {
            let is_pending = store.journal.notify(entry, waker) == Status::Pending;
            return Ok(Followed::or_sent(is_pending));
        }
        let (after, limit) = span(follower.range);
        let read = match conversations.read_behind_at_hand(&follower.name, after, limit)? {
            Some(Behind::Read(read)) => read,
            Some(Behind::Archived(page)) => {
                follower.page = Some(PendingPage::Archive(page));
                return Ok(Followed::Sent);
            }
            None => {
                follower.page = Some(self.read_elsewhere(follower));
                return Ok(Followed::Sent);
            }
        };
        if read.last_seq().is_some() {
            return self.send_items(follower, &read);
        }
        let from = follower.range.from.max(1);
        follower.waiting = store.wait_for_message(place, from, waker)?;
        Ok(Followed::or_sent(follower.waiting.is_some()))
    }

    fn read_elsewhere(&self, follower: &Follower) -> PendingPage {
        let (name, (after, limit)) = (follower.name.clone(), span(follower.range));
        let read = move |it: Conversations<'_>| it.read_behind(&name, after, limit);
        PendingPage::Disk(elsewhere(self.inner, |read| read, read))
    }

    /// Sends a follower the messages that were read for it, if any.
    fn send_items(
        &mut self,
        follower: &mut Follower,
        read: &PageRead,
    ) -> Result<Followed, Refusal> {
        if let Some(last) = read.last_seq() {
            self.send_messages(follower.tag, true, read)?;
            follower.range.from = last + 1;
            follower.credit -= 1;
            self.local.tally.count(Counter::Items);
        }
        Ok(Followed::Sent)
    }
}

/// Returns the answer to an append, to be sent once it is durable.
pub(super) fn answer_of(outcome: Result<Appended, Refusal>) -> Answer {
    match outcome {
        Err(refusal) => Answer::Refused(refusal),
        Ok(appended) => Answer::Messages {
            first: appended.first_seq,
            next: appended.last_seq + 1,
            deduplicated: appended.deduplicated as u32,
            made: appended.into_made_ids(),
        },
    }
}

/// The outcome of serving a follower.
enum Followed {
    /// Messages were sent, or more may be available now.
    Sent,
    /// No messages are available: the task is woken when there are.
    Waits,
}

impl Followed {
    fn or_sent(waits: bool) -> Self {
        match waits {
            true => Self::Waits,
            false => Self::Sent,
        }
    }
}

/// Returns the message before a range, and the limit of the read after it.
pub(super) fn span(range: Range) -> (u64, ReadLimit) {
    let after = range.from.saturating_sub(1);
    let page = Page {
        side: Side::After(after),
        limit: range.records_max as usize,
        bytes: range.bytes_max as usize,
    };
    (after, page.limit())
}
