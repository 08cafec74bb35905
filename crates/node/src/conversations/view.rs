//! What a conversation is besides its messages.

use conversations::Lifecycle;
use model::Name;

use super::drafts::Open;
use super::slot::Room;
use super::{Conversations, Pending, Refusal};

/// How a conversation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// `org/namespace/x`.
    pub name: String,
    /// The number of the newest message; 0 for none.
    pub head_seq: u64,
    /// The number of the oldest that is kept; one above the newest when none is.
    pub start_seq: u64,
    /// Everything else, with the version that changes with each change of it but cursors.
    pub state: conversations::State,
    /// Answers that are being streamed.
    pub streaming: Vec<Streaming>,
}

/// An answer that is being streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streaming {
    /// The draft's number, as watchers are told it.
    pub draft: u64,
    /// The id of the message that it becomes.
    pub id: String,
    /// Who writes it, empty for nobody in particular.
    pub from: String,
}

impl Conversations<'_> {
    /// How a conversation stands; told when all of it is durable.
    pub fn get(&self, name: &Name) -> Result<Pending<View>, Refusal> {
        self.with_existing(name, |_, room, _| {
            let tickets = self.store.tickets(room);
            let outcome = check_alive(room).map(|()| view(name.base(), room));
            Ok(Pending::new(&self.store.journal, tickets, outcome))
        })
    }
}

pub(super) fn view(name: &str, room: &Room) -> View {
    View {
        name: name.to_owned(),
        head_seq: room.engine.head(),
        start_seq: room.engine.start(),
        state: room.engine.state().clone(),
        streaming: room.drafts.iter().map(Open::streaming).collect(),
    }
}

/// Whether the conversation is there for everybody.
pub(super) fn check_alive(room: &Room) -> Result<(), Refusal> {
    match room.engine.state().lifecycle {
        Lifecycle::Open | Lifecycle::Archived => Ok(()),
        Lifecycle::Copying => Err(conversations::Refusal::Copying.into()),
        Lifecycle::Erased => Err(Refusal::gone()),
    }
}
