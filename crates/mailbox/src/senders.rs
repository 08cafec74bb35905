//! Who wrote what is still in the mailbox, and whose turn it is.
//!
//! First deliveries go out in turn over the senders, and in order within each. A message that has
//! left meanwhile stays in its sender's queue until it is met there: offsets are never used twice,
//! so it is recognised.

use std::collections::{HashMap, VecDeque};

/// Index of a sender; valid while it has messages in the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderId(u32);

#[derive(Debug)]
pub(crate) struct Sender<S> {
    name: Box<str>,
    /// Its messages that are in the mailbox.
    messages: u32,
    /// Messages that wait for their first delivery, in order.
    pub(crate) waiting: VecDeque<u64>,
    /// First deliveries that are unanswered, and with whom they all are.
    pub(crate) unanswered: u32,
    pub(crate) at: Option<S>,
    /// Whether it is in the round.
    in_round: bool,
}

#[derive(Debug)]
pub(crate) struct Senders<S> {
    slots: Vec<Option<Sender<S>>>,
    free: Vec<u32>,
    by_name: HashMap<Box<str>, SenderId>,
    /// Senders with something that waits; one that left may still stand here.
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
    /// Notes a message of that sender.
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

    /// One of its messages has left.
    pub(crate) fn leave(&mut self, id: SenderId) {
        let Some(sender) = self.get_mut(id) else {
            return;
        };
        sender.messages -= 1;
        if sender.messages == 0
            && let Some(sender) = self.slots[id.0 as usize].take()
        {
            self.by_name.remove(&sender.name);
            // It may still stand in the round: the slot is not given to another one before that.
            if !sender.in_round {
                self.free.push(id.0);
            }
        }
    }

    /// A message waits for its first delivery.
    pub(crate) fn wait(&mut self, id: SenderId, offset: u64) {
        if let Some(sender) = self.get_mut(id) {
            sender.waiting.push_back(offset);
            if !std::mem::replace(&mut sender.in_round, true) {
                self.round.push_back(id);
            }
        }
    }

    /// Whose turn it is.
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

    /// Puts back who took its turn: behind all others.
    pub(crate) fn end_turn(&mut self, id: SenderId) {
        self.round.push_back(id);
    }

    /// Puts back who took its turn, in front: it has had none.
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
