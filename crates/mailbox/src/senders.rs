//! Senders of the messages in a mailbox, and their turns.
//!
//! First deliveries take turns over the senders, and are in order within each. A removed message
//! stays in its sender's queue until it is reached there. Offsets are never reused, so it is
//! recognised.

use std::collections::{HashMap, VecDeque};

/// Index of a sender; valid while it has messages in the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderId(u32);

#[derive(Debug)]
pub(crate) struct Sender<S> {
    name: Box<str>,
    /// Number of its messages in the mailbox.
    messages: u32,
    /// Messages that wait for their first delivery, in order.
    pub(crate) waiting: VecDeque<u64>,
    /// Number of unanswered first deliveries; `at` has the subscriber of all of them.
    pub(crate) unanswered: u32,
    pub(crate) at: Option<S>,
    /// True if the sender is in the round.
    in_round: bool,
}

#[derive(Debug)]
pub(crate) struct Senders<S> {
    slots: Vec<Option<Sender<S>>>,
    free: Vec<u32>,
    by_name: HashMap<Box<str>, SenderId>,
    /// Senders with waiting messages. Removed senders may still be listed.
    round: VecDeque<SenderId>,
}

impl<S> Default for Senders<S> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_name: HashMap::new(),
            round: VecDeque::new(),
        }
    }
}

impl<S> Senders<S> {
    /// Adds a message of a sender.
    pub(crate) fn enter(&mut self, name: &str) -> SenderId {
        let id = match self.by_name.get(name) {
            Some(id) => *id,
            None => self.add(name),
        };
        if let Some(sender) = self.get_mut(id) {
            sender.messages += 1;
        }
        id
    }

    fn add(&mut self, name: &str) -> SenderId {
        let sender = Some(Sender {
            name: name.into(),
            messages: 0,
            waiting: VecDeque::new(),
            unanswered: 0,
            at: None,
            in_round: false,
        });
        let id = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = sender;
                SenderId(index)
            }
            None => {
                self.slots.push(sender);
                SenderId(self.slots.len() as u32 - 1)
            }
        };
        self.by_name.insert(name.into(), id);
        id
    }

    /// Removes a message of a sender.
    pub(crate) fn leave(&mut self, id: SenderId) {
        let Some(sender) = self.get_mut(id) else {
            return;
        };
        sender.messages -= 1;
        if sender.messages == 0
            && let Some(sender) = self.slots[id.0 as usize].take()
        {
            self.by_name.remove(&sender.name);
            // The sender may still be in the round; then the slot is freed when its turn comes.
            if !sender.in_round {
                self.free.push(id.0);
            }
        }
    }

    /// Adds a message that waits for its first delivery.
    pub(crate) fn wait(&mut self, id: SenderId, offset: u64) {
        if let Some(sender) = self.get_mut(id) {
            sender.waiting.push_back(offset);
            if !std::mem::replace(&mut sender.in_round, true) {
                self.round.push_back(id);
            }
        }
    }

    /// Takes the next sender off the round.
    pub(crate) fn take_turn(&mut self) -> Option<SenderId> {
        while let Some(id) = self.round.pop_front() {
            match self.get_mut(id) {
                Some(sender) if !sender.waiting.is_empty() => return Some(id),
                Some(sender) => sender.in_round = false,
                None => self.free.push(id.0),
            }
        }
        None
    }

    /// Returns a sender to the end of the round.
    pub(crate) fn end_turn(&mut self, id: SenderId) {
        self.round.push_back(id);
    }

    /// Returns a sender to the front of the round, because nothing was delivered.
    pub(crate) fn keep_turn(&mut self, id: SenderId) {
        self.round.push_front(id);
    }

    pub(crate) fn get_mut(&mut self, id: SenderId) -> Option<&mut Sender<S>> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    pub(crate) fn name(&self, id: SenderId) -> &str {
        let sender = self.slots.get(id.0 as usize).and_then(Option::as_ref);
        sender.map_or("", |sender| &sender.name)
    }
}
