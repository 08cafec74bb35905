//! Conversations: ordered messages, the state derived from them, and watchers.
//!
//! The engine (`conversations`) decides, the journal stores. A conversation in use is *loaded*: its
//! engine is built from the stored state, and unloaded after it was unused for a while. An idle
//! conversation costs only its entries in the journal and the directory.
//!
//! The messages of conversation number `k` are stream `k` of its shard, one record each; its state
//! is stream `k` with the top bit set. Every message and every change of state has an event record
//! in the event partition of its namespace and shard, appended under the same guard, so one never
//! exists without the other. Nothing is acknowledged or shown before it is durable.
//!
//! Lock order: the map of loaded conversations, a conversation, the directory, the journal's locks.

mod abandoned_drafts;
mod agent_work;
mod append;
mod context;
mod draft_log;
mod drafts;
mod events;
mod expiry;
pub mod feed;
mod fork;
mod history_lookup;
mod load;
mod read;
mod read_pages;
mod refusal;
mod retention;
mod slot;
mod state;
#[cfg(test)]
mod tests;
mod turns;
mod unsynced;
mod view;
mod watch;
mod write;

use std::sync::Arc;

use journal::{Journal, StreamId};
use model::{ErrorCode, Name};

pub(crate) use agent_work::{Look, answered_by, delivery_id};
pub use append::{Appended, Batch};
pub use context::{ContextRead, ShownMessage};
pub use conversations::context::{Cut, Kinds, Policy, Strategy, Treatment, WindowMessage};
pub use conversations::record::{Facts, MessageView};
pub use conversations::resume::{DraftPosition, Position};
pub use conversations::{Change, Cursors, Lifecycle, Origin, Settings, State, Summary};
pub use conversations::{
    Limits, NewMessage, Original, PartFact, PartKind, Status, Stub, call_hash, estimated_tokens,
};
pub use drafts::{Assemble, Assembled, DraftWriter, Finished, NewDraft};
pub use read::{Message, Page, PageRead, Side};
pub use read_pages::MessageRange;
pub use refusal::{Details, Refusal};
pub(crate) use slot::Rooms;
pub use state::Changed;
pub use turns::{ConversationRef, MessageFollower};
pub use view::{Streaming, View};
pub use watch::{Item, Stored, Watch};

use crate::node::{Inner, Node};
use crate::store::Store;
use crate::turn::SYSTEM_ORG;

/// A pending outcome of a request to a conversation.
pub type Pending<T> = platform::Pending<T, Refusal>;

/// The state of conversation `k` is stream `k` with this bit.
const STATE_BIT: u64 = 1 << 63;

/// Limits of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Limits of messages, state and drafts.
    pub limits: Limits,
    /// Maximum number of watchers, over all conversations.
    pub watchers_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            watchers_max: 10_000,
        }
    }
}

impl Options {
    /// Returns the options with limits lowered to the journal's maximum record size.
    pub(crate) fn fitting(self, journal: &Journal) -> Self {
        Self {
            limits: self.limits.fitting(journal.record_size_max()),
            ..self
        }
    }
}

/// The conversations of a node. See the module docs.
#[derive(Clone, Copy)]
pub struct Conversations<'a> {
    inner: &'a Arc<Inner>,
    store: &'a Store,
    /// The current time, if it was read once for many conversations.
    moment: Option<Moment>,
}

/// A reading of the clocks.
#[derive(Clone, Copy)]
struct Moment {
    now_ns: u64,
    unix_ms: u64,
}

impl Node {
    /// Returns the conversations; `None` for a node without storage.
    pub fn conversations(&self) -> Option<Conversations<'_>> {
        let store = self.inner.store.as_ref()?;
        Some(Conversations {
            inner: &self.inner,
            store,
            moment: None,
        })
    }
}

impl Conversations<'_> {
    /// Returns the limits.
    pub fn options(&self) -> &Options {
        &self.store.rooms.options
    }

    fn now_ns(&self) -> u64 {
        let moment = self.moment.map(|it| it.now_ns);
        moment.unwrap_or_else(|| self.inner.platform.ports.clock.now_ns())
    }

    /// Returns the wall-clock time in milliseconds since 1970-01-01 UTC.
    fn unix_ms(&self) -> u64 {
        let moment = self.moment.map(|it| it.unix_ms);
        moment.unwrap_or_else(|| self.inner.platform.ports.clock.unix_ms())
    }
}

/// Checks whether a name is valid for a conversation.
pub(crate) fn check_name(name: &Name) -> Result<(), Refusal> {
    let message = if name.org() == SYSTEM_ORG {
        format!("names of `{SYSTEM_ORG}/` belong to the node itself")
    } else if name.instance().is_some() {
        format!("a conversation has no instances: `{}`", name.base())
    } else {
        return Ok(());
    };
    Err(Refusal::new(ErrorCode::InvalidArgument, message))
}

/// Returns the stream of a conversation's state.
pub(crate) fn state_of(messages: StreamId) -> StreamId {
    StreamId(messages.0 | STATE_BIT)
}
