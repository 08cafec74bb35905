//! What has happened in conversations that have an agent, for whoever calls it.
//!
//! Whoever appends notes the conversation and goes on. A conversation is noted once, however much
//! happens: there are never more notes than conversations.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};

use journal::StreamId;
use parking_lot::Mutex;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Touched(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    /// Whether anybody looks at the notes.
    is_kept: bool,
    conversations: BTreeSet<u64>,
    /// Those whose agent is answering up to a message and wants no other then.
    busy: BTreeMap<u64, u64>,
    /// Those whose agent will answer up to a message later.
    awaited: BTreeMap<u64, u64>,
    /// There is something to look at.
    is_new: bool,
    waker: Option<Waker>,
}

impl Inside {
    fn wake(&mut self) {
        self.is_new = true;
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Touched {
    /// From now on there is somebody who looks.
    pub(super) fn keep(&self) {
        self.0.lock().is_kept = true;
    }

    /// Something has happened in a conversation that has an agent.
    pub(crate) fn touch(&self, conversation: StreamId) {
        let mut inside = self.0.lock();
        if inside.is_kept && inside.conversations.insert(conversation.0) {
            inside.wake();
        }
    }

    /// Looked at again, but there is no hurry.
    pub(super) fn put_back(&self, conversations: &[u64]) {
        let mut inside = self.0.lock();
        inside.conversations.extend(conversations);
    }

    /// There is something to do.
    pub(super) fn wake(&self) {
        self.0.lock().wake();
    }

    /// Some of those that were touched, and whether there are more.
    pub(super) fn take(&self, count: usize) -> (Vec<u64>, bool) {
        let mut inside = self.0.lock();
        inside.is_new = false;
        let taken: Vec<_> = inside.conversations.iter().copied().take(count).collect();
        for conversation in &taken {
            inside.conversations.remove(conversation);
        }
        (taken, !inside.conversations.is_empty())
    }

    /// Ready when there is something to do.
    pub(super) fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inside = self.0.lock();
        if inside.is_new {
            return Poll::Ready(());
        }
        inside.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The last message that the conversation's agent is answering, if it wants no other now.
    pub(crate) fn busy_with(&self, conversation: StreamId) -> Option<u64> {
        self.0.lock().busy.get(&conversation.0).copied()
    }

    /// The last message that the conversation's agent will answer later.
    pub(crate) fn awaited(&self, conversation: StreamId) -> Option<u64> {
        self.0.lock().awaited.get(&conversation.0).copied()
    }

    pub(super) fn set_busy(&self, conversation: u64, through_seq: u64) {
        self.0.lock().busy.insert(conversation, through_seq);
    }

    pub(super) fn set_awaited(&self, conversation: u64, through_seq: u64) {
        self.0.lock().awaited.insert(conversation, through_seq);
    }

    /// No call for the conversation is in flight any more.
    pub(super) fn hung_up(&self, conversation: u64) {
        let mut inside = self.0.lock();
        inside.busy.remove(&conversation);
        inside.awaited.remove(&conversation);
    }
}
