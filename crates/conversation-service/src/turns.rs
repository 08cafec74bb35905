//! Conversations in the turns of a connection: appends that share a sync, and followers of messages.

use std::sync::Arc;
use std::task::{Poll, Waker};

use journal::{Following, Guard, Round, ShardId};
use model::{ErrorCode, Name};
use platform::RequestContext;

use super::service::Moment;
use super::slot::Slot;
use super::write::Writer;
use super::{Appended, Batch, ConversationError, Conversations, MessageRange, PageRead, Pending};

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

impl Conversations {
    /// Appends messages to a conversation, all or none, in the round of a client's requests. Returns
    /// `None`, with nothing changed, if the append has to read from the disk:
    /// [`Conversations::append`] does.
    pub fn append_in_round(
        &self,
        conversation: &mut ConversationRef,
        batch: Batch<'_>,
        mut context: RequestContext<'_>,
    ) -> Result<Option<Pending<Appended>>, ConversationError> {
        let now = Moment {
            now_ns: context.now_ns,
            unix_ms: context.unix_ms,
        };
        let round = context.round(&self.store.journal);
        let ConversationRef { name, slot } = conversation;
        let appended = self.append_in_memory(name, slot, batch, round, now)?;
        Ok(appended.map(|appended| {
            appended.count(&batch, |counter, count| context.tally.add(counter, count));
            appended.into_pending(&self.store)
        }))
    }
}

/// A follower of the messages of a conversation, which need not exist. It is polled for one page
/// after the other.
pub struct MessageFollower {
    conversations: Conversations,
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
    pub fn new(
        conversations: &Conversations,
        conversation: &ConversationRef,
        range: MessageRange,
    ) -> Self {
        Self {
            conversations: conversations.clone(),
            name: conversation.name.clone(),
            range,
            waiting: None,
            page: None,
        }
    }

    /// Returns the next durable messages; until there are any, the waker is woken when there may be.
    pub fn poll_next(&mut self, waker: &Waker) -> Poll<Result<PageRead, ConversationError>> {
        self.end_waiting();
        loop {
            match self.step(waker)? {
                Step::Waits => return Poll::Pending,
                // A page without messages tells that those up to its head were retracted or erased.
                Step::Page(page) if self.is_news(&page) => {
                    self.range.after = page.last_seq().unwrap_or(page.head_seq);
                    return Poll::Ready(Ok(page));
                }
                Step::Again | Step::Page(_) => {}
            }
        }
    }

    fn is_news(&self, page: &PageRead) -> bool {
        page.last_seq().is_some() || page.head_seq > self.range.after
    }

    fn step(&mut self, waker: &Waker) -> Result<Step, ConversationError> {
        if let Some(page) = &mut self.page {
            let Poll::Ready(read) = page.poll_answer(waker) else {
                return Ok(Step::Waits);
            };
            self.page = None;
            return read.map(Step::Page);
        }
        let conversations = self.conversations.clone();
        let store = &conversations.store;
        // Read before the name is looked up, so that a conversation that is created afterwards is
        // noticed.
        let shard = store.shard_of(self.name.base());
        let made = store.names_end(shard);
        if !conversations.is_at_hand(&self.name)? {
            self.read_from_disk();
            return Ok(Step::Again);
        }
        let place = match conversations.place(&self.name) {
            Ok(place) => place,
            Err(refusal) if refusal.code() == ErrorCode::NotFound => {
                self.waiting = store.follow_names(shard, made, waker)?;
                return Ok(self.waits());
            }
            Err(refusal) => return Err(refusal),
        };
        let Some(mut page) = conversations.read_after_at_once(&self.name, self.range)? else {
            self.read_from_disk();
            return Ok(Step::Again);
        };
        let Poll::Ready(read) = page.poll_answer(waker) else {
            self.page = Some(page);
            return Ok(Step::Waits);
        };
        let read = read?;
        if self.is_news(&read) {
            return Ok(Step::Page(read));
        }
        self.waiting =
            conversations.wait_for_message(&place, self.range.after.saturating_add(1), waker)?;
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
        let conversations = self.conversations.clone();
        let platform = &self.conversations.platform;
        self.page = Some(platform.offload_pending(move || conversations.read_after(&name, range)));
    }

    fn end_waiting(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.conversations.store.unfollow(&waiting);
        }
    }
}

impl Drop for MessageFollower {
    fn drop(&mut self) {
        self.end_waiting();
    }
}
