//! Conversations in the turns of a connection: appends that share a sync, and followers of messages.

use std::sync::Arc;
use std::task::{Poll, Waker};

use journal::{Following, Guard, Round, ShardId, Status};
use model::{ErrorCode, Name};

use super::slot::Slot;
use super::write::Writer;
use super::{Appended, Batch, Conversations, MessageRange, Moment, PageRead, Pending, Refusal};
use crate::node::Node;
use crate::store::Store;
use crate::turn::Turn;

impl Writer for Round {
    fn lock(&self, shard: ShardId, now_ms: u64) -> Guard<'_> {
        Self::lock(self, shard, now_ms)
    }
}

/// A conversation that a client uses. It need not exist.
#[derive(Clone)]
pub struct ConversationRef {
    name: Name,
    /// The loaded conversation, once it was appended to.
    slot: Option<Arc<Slot>>,
}

impl ConversationRef {
    /// Returns the conversation with that name.
    pub fn new(name: Name) -> Self {
        Self { name, slot: None }
    }

    /// Returns the name.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl Turn<'_> {
    /// Appends messages to a conversation, all or none. Returns `None`, with nothing changed, if the
    /// append has to read from the disk: [`Conversations::append`] does.
    pub fn append_messages(
        &mut self,
        conversation: &mut ConversationRef,
        batch: Batch<'_>,
    ) -> Result<Option<Pending<Appended>>, Refusal> {
        // The locks taken below come before the table's lock.
        self.table = None;
        let inner = self.inner;
        let store = inner.store.as_ref().ok_or_else(Refusal::no_storage)?;
        let conversations = Conversations {
            inner,
            store,
            moment: Some(Moment {
                now_ns: self.now_ns,
                unix_ms: self.unix_ms(),
            }),
        };
        let local = &mut *self.local;
        let round = local.round.get_or_insert_with(|| store.journal.round());
        let ConversationRef { name, slot } = conversation;
        let appended = conversations.append_by(name, slot, batch, round)?;
        Ok(appended.map(|appended| {
            appended.count(&batch, |counter, count| local.tally.add(counter, count));
            appended.into_pending(store)
        }))
    }
}

/// A follower of the messages of a conversation, which need not exist. It is polled for one page
/// after the other.
pub struct MessageFollower {
    node: Node,
    name: Name,
    /// The position of the next page, and the limits of one page.
    range: MessageRange,
    /// The registration with the journal.
    waiting: Option<Following>,
    /// The page that another thread or the archive reads.
    page: Option<Pending<PageRead>>,
}

/// The state of a follower that has no page to return yet.
enum Step {
    /// The waker is registered.
    Waits,
    /// There may be more now.
    Again,
    Page(PageRead),
}

impl MessageFollower {
    /// Creates a follower from the start of a range; the limits of the range are those of each page.
    pub fn new(node: &Node, conversation: &ConversationRef, range: MessageRange) -> Self {
        Self {
            node: node.clone(),
            name: conversation.name.clone(),
            range,
            waiting: None,
            page: None,
        }
    }

    /// Returns the next durable messages; until there are any, the waker is woken when there may be.
    pub fn poll_next(&mut self, waker: &Waker) -> Poll<Result<PageRead, Refusal>> {
        let node = self.node.clone();
        let Some(conversations) = node.conversations() else {
            return Poll::Ready(Err(Refusal::no_storage()));
        };
        self.end_waiting(conversations.store);
        loop {
            match self.step(conversations, waker)? {
                Step::Waits => return Poll::Pending,
                Step::Page(page) if page.last_seq().is_some() => {
                    self.range.after = page.last_seq().unwrap_or(self.range.after);
                    return Poll::Ready(Ok(page));
                }
                Step::Again | Step::Page(_) => {}
            }
        }
    }

    fn step(&mut self, conversations: Conversations<'_>, waker: &Waker) -> Result<Step, Refusal> {
        if let Some(page) = &mut self.page {
            let Poll::Ready(read) = page.poll_answer(waker) else {
                return Ok(Step::Waits);
            };
            self.page = None;
            return read.map(Step::Page);
        }
        let store = conversations.store;
        // Read before the name is looked up, so that a conversation that is created afterwards is
        // noticed.
        let made = store.stream_count() as u64;
        if !conversations.is_at_hand(&self.name)? {
            self.read_from_disk();
            return Ok(Step::Again);
        }
        let place = match conversations.place(&self.name) {
            Ok(place) => place,
            Err(refusal) if refusal.code == ErrorCode::NotFound => {
                self.waiting = store.wait_for_name(made, waker)?;
                return Ok(self.waits());
            }
            Err(refusal) => return Err(refusal),
        };
        if let Some(entry) = store.creation(place.location.stream) {
            return match store.journal.notify(entry, waker) {
                Status::Pending => Ok(Step::Waits),
                Status::Durable => Ok(Step::Again),
                // This fails with the reason.
                Status::Failed => store.wait_for_name(made, waker).map(|_| Step::Again),
            };
        }
        let Some(mut page) = conversations.read_after_at_once(&self.name, self.range)? else {
            self.read_from_disk();
            return Ok(Step::Again);
        };
        let Poll::Ready(read) = page.poll_answer(waker) else {
            self.page = Some(page);
            return Ok(Step::Waits);
        };
        let read = read?;
        if read.last_seq().is_some() {
            return Ok(Step::Page(read));
        }
        self.waiting = store.wait_for_message(place, self.range.after.saturating_add(1), waker)?;
        Ok(self.waits())
    }

    fn waits(&self) -> Step {
        match self.waiting {
            Some(_) => Step::Waits,
            None => Step::Again,
        }
    }

    fn read_from_disk(&mut self) {
        let (name, range) = (self.name.clone(), self.range);
        self.page = Some(self.node.offload_pending(move |node| {
            let conversations = node.conversations().ok_or_else(Refusal::no_storage)?;
            conversations.read_after(&name, range)
        }));
    }

    fn end_waiting(&mut self, store: &Store) {
        if let Some(waiting) = self.waiting.take() {
            // The registration may have ended by itself.
            store.journal.unfollow(&waiting);
        }
    }
}

impl Drop for MessageFollower {
    fn drop(&mut self) {
        let node = self.node.clone();
        if let Some(store) = &node.inner.store {
            self.end_waiting(store);
        }
    }
}
