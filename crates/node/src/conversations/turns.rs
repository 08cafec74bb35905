//! Conversations in the turns of a connection: appends that share a sync, and followers of messages.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use journal::{Following, Guard, Round, ShardId, Status};
use model::{ErrorCode, Name};

use super::slot::Slot;
use super::write::Writer;
use super::{Appended, Batch, Conversations, MessageRange, Moment, PageRead, Pending, Refusal};
use crate::node::{Inner, Node};
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
    inner: Arc<Inner>,
    name: Name,
    /// The position of the next page, and the limits of one page.
    range: MessageRange,
    /// The registration with the journal.
    waiting: Option<Following>,
    /// The page that is being read.
    page: Option<PendingPage>,
}

/// A page that is read by another thread, and then perhaps by the archive.
enum PendingPage {
    Disk(Pending<Pending<PageRead>>),
    Archive(Pending<PageRead>),
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
            inner: node.inner.clone(),
            name: conversation.name.clone(),
            range,
            waiting: None,
            page: None,
        }
    }

    /// Returns the next durable messages; until there are any, the waker is woken when there may be.
    pub fn poll_next(&mut self, waker: &Waker) -> Poll<Result<PageRead, Refusal>> {
        let inner = self.inner.clone();
        let Some(store) = &inner.store else {
            return Poll::Ready(Err(Refusal::no_storage()));
        };
        self.end_waiting(store);
        loop {
            match self.step(store, &inner, waker)? {
                Step::Waits => return Poll::Pending,
                Step::Page(page) if page.last_seq().is_some() => {
                    self.range.after = page.last_seq().unwrap_or(self.range.after);
                    return Poll::Ready(Ok(page));
                }
                Step::Again | Step::Page(_) => {}
            }
        }
    }

    fn step(&mut self, store: &Store, inner: &Arc<Inner>, waker: &Waker) -> Result<Step, Refusal> {
        if self.page.is_some() {
            return match self.poll_page(waker) {
                Poll::Ready(page) => page.map(Step::Page),
                Poll::Pending => Ok(Step::Waits),
            };
        }
        let conversations = Conversations {
            inner,
            store,
            moment: None,
        };
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
            self.page = Some(PendingPage::Archive(page));
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
        let read = self.inner.pending_offloaded(move |inner| {
            let store = inner.store.as_ref().ok_or_else(Refusal::no_storage)?;
            let conversations = Conversations {
                inner,
                store,
                moment: None,
            };
            conversations.read_after(&name, range)
        });
        self.page = Some(PendingPage::Disk(read));
    }

    fn poll_page(&mut self, waker: &Waker) -> Poll<Result<PageRead, Refusal>> {
        if let Some(PendingPage::Disk(read)) = &mut self.page {
            match ready!(read.poll_answer(waker)) {
                Ok(page) => self.page = Some(PendingPage::Archive(page)),
                Err(refusal) => {
                    self.page = None;
                    return Poll::Ready(Err(refusal));
                }
            }
        }
        let Some(PendingPage::Archive(page)) = &mut self.page else {
            return Poll::Pending;
        };
        let read = ready!(page.poll_answer(waker));
        self.page = None;
        Poll::Ready(read)
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
        let inner = self.inner.clone();
        if let Some(store) = &inner.store {
            self.end_waiting(store);
        }
    }
}
