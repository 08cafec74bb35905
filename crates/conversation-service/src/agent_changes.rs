//! The set of conversations that changed and have an agent, for the caller of agents.
//!
//! An append adds its conversation to the set and returns. The set contains each conversation once,
//! so its size is bounded by the number of conversations.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};

use journal::StreamId;
use parking_lot::Mutex;

/// The set of changed conversations with an agent.
#[derive(Debug, Default)]
pub struct AgentChanges(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// True once the set is read; until then nothing is added.
    is_kept: bool,
    conversations: BTreeSet<u64>,
    /// By conversation, the last message that its agent is answering. Contains only agents that
    /// refuse messages meanwhile.
    busy: BTreeMap<u64, u64>,
    /// By conversation, the last message that its agent promised to answer later.
    awaited: BTreeMap<u64, u64>,
    /// True if there is something new to look at.
    is_new: bool,
    waker: Option<Waker>,
}

impl State {
    fn wake(&mut self) {
        self.is_new = true;
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl AgentChanges {
    /// Enables the set.
    pub fn keep(&self) {
        self.0.lock().is_kept = true;
    }

    /// Adds a conversation that changed and has an agent.
    pub fn touch(&self, conversation: StreamId) {
        let mut inside = self.0.lock();
        if inside.is_kept && inside.conversations.insert(conversation.0) {
            inside.wake();
        }
    }

    /// Adds conversations to be looked at again, without waking the reader.
    pub fn put_back(&self, conversations: &[u64]) {
        let mut inside = self.0.lock();
        inside.conversations.extend(conversations);
    }

    /// Wakes the reader.
    pub fn wake(&self) {
        self.0.lock().wake();
    }

    /// Removes up to `count` conversations. Returns them, and whether there are more.
    pub fn take(&self, count: usize) -> (Vec<u64>, bool) {
        let mut inside = self.0.lock();
        inside.is_new = false;
        let taken: Vec<_> = inside.conversations.iter().copied().take(count).collect();
        for conversation in &taken {
            inside.conversations.remove(conversation);
        }
        (taken, !inside.conversations.is_empty())
    }

    /// Becomes ready when there is something new.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inside = self.0.lock();
        if inside.is_new {
            return Poll::Ready(());
        }
        inside.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the last message that the conversation's agent is answering, if the agent refuses
    /// messages meanwhile.
    pub fn busy_with(&self, conversation: StreamId) -> Option<u64> {
        self.0.lock().busy.get(&conversation.0).copied()
    }

    /// Returns the last message that the conversation's agent promised to answer later.
    pub fn awaited(&self, conversation: StreamId) -> Option<u64> {
        self.0.lock().awaited.get(&conversation.0).copied()
    }

    /// Records that the conversation's agent is answering up to this message and refuses other
    /// messages meanwhile.
    pub fn set_busy(&self, conversation: u64, through_seq: u64) {
        self.0.lock().busy.insert(conversation, through_seq);
    }

    /// Records that the conversation's agent promised to answer up to this message later.
    pub fn set_awaited(&self, conversation: u64, through_seq: u64) {
        self.0.lock().awaited.insert(conversation, through_seq);
    }

    /// Records that no call for the conversation is in flight.
    pub fn call_ended(&self, conversation: u64) {
        let mut inside = self.0.lock();
        inside.busy.remove(&conversation);
        inside.awaited.remove(&conversation);
    }
}
