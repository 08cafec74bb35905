//! The public view of a conversation, without its messages.

use conversations::Lifecycle;
use model::Name;

use super::open_draft::{OpenDraft, StreamedDraft};
use super::slot::Room;
use super::{ConversationError, Conversations, Pending};

/// The state of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// `org/namespace/x`.
    pub name: String,
    /// The number of the newest message or retraction; 0 for none.
    pub head_seq: u64,
    /// The number of the oldest available message; one more than `head_seq` if there is none.
    pub start_seq: u64,
    /// The state, with a version that changes with every change except those of cursors.
    pub state: conversations::State,
    /// The open drafts.
    pub streaming: Vec<StreamedDraft>,
}

impl Conversations {
    /// Returns the state of a conversation; ready when all of it is durable.
    pub fn get(&self, name: &Name) -> Result<Pending<View>, ConversationError> {
        self.with_existing(name, |_, room, _| {
            let outcome = check_alive(room).map(|()| view(name.base(), room));
            Ok(Pending::new(&self.store.journal, room.ticket, outcome))
        })
    }
}

pub(super) fn view(name: &str, room: &Room) -> View {
    View {
        name: name.to_owned(),
        head_seq: room.engine.head(),
        start_seq: room.engine.state().retracted.next_live(room.engine.start()),
        state: room.engine.state().clone(),
        streaming: room.drafts.iter().map(OpenDraft::streaming).collect(),
    }
}

/// Checks that the conversation is visible: neither incomplete nor erased.
pub(super) fn check_alive(room: &Room) -> Result<(), ConversationError> {
    match room.engine.state().lifecycle {
        Lifecycle::Open | Lifecycle::Archived => Ok(()),
        Lifecycle::Copying => Err(conversations::Refusal::Copying.into()),
        Lifecycle::Erased => Err(ConversationError::Gone),
    }
}
