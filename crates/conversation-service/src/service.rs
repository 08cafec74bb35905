//! [`Conversations`]: the loaded conversations and what they share.

use std::sync::Arc;

use model::{Name, SYSTEM_ORG};
use platform::Platform;
use store::Store;

use crate::agent_changes::AgentChanges;
use crate::archive::Archive;
use crate::error::ConversationError;
use crate::open_draft::Assemble;
use crate::options::Options;
use crate::slot::Rooms;

/// The conversations of a node. Cheap to clone. See the crate docs.
#[derive(Clone)]
pub struct Conversations {
    pub(crate) platform: Arc<Platform>,
    pub(crate) store: Arc<Store>,
    pub(crate) rooms: Arc<Rooms>,
}

/// A reading of the clocks.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    pub(crate) unix_ms: u64,
}

impl Conversations {
    /// Opens the conversations of a store; each is loaded by its first use. Without an assembler,
    /// answers cannot be streamed. Drafts that the last shutdown interrupted become messages.
    pub fn open(
        platform: Arc<Platform>,
        store: Arc<Store>,
        options: Options,
        assembler: Option<Arc<dyn Assemble>>,
        archive: Option<Arc<dyn Archive>>,
    ) -> Result<Self, ConversationError> {
        let rooms = Rooms::new(options, &store.journal, assembler, archive);
        let conversations = Self {
            platform,
            store,
            rooms: Arc::new(rooms),
        };
        conversations.convert_lost_drafts()?;
        Ok(conversations)
    }

    /// Returns the limits.
    pub fn options(&self) -> &Options {
        &self.rooms.options
    }

    /// Returns the conversations that changed and have an agent.
    pub fn agent_changes(&self) -> &AgentChanges {
        &self.rooms.agent_changes
    }

    /// Writes new content of open drafts to the journal, ends drafts without an author, trims
    /// messages beyond the retention of their conversation, and unloads unused conversations.
    /// Returns whether work remains.
    pub fn sweep(&self) -> bool {
        let is_draft = self.sweep_drafts();
        self.sweep_rooms() || is_draft
    }

    pub(crate) fn now(&self) -> Moment {
        Moment {
            now_ns: self.platform.now_ns(),
            unix_ms: self.platform.unix_ms(),
        }
    }
}

/// Checks whether a name is valid for a conversation.
pub(crate) fn check_name(name: &Name) -> Result<(), ConversationError> {
    if name.org() == SYSTEM_ORG {
        return Err(ConversationError::SystemName);
    }
    match name.instance() {
        None => Ok(()),
        Some(_) => Err(ConversationError::Instance {
            base: name.base().to_owned(),
        }),
    }
}
