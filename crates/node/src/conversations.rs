//! Conversations: messages in order, what is derived from them, and who watches.
//!
//! The engine (`conversations`) decides, the journal keeps. A conversation that somebody uses is
//! *loaded*: its engine is made from its state, and let go when nobody has used it for a while. An
//! idle one costs its entries in the journal and the directory.
//!
//! The messages of conversation number `k` are stream `k` of its shard, one record each; what there
//! is besides is stream `k` with the top bit set; every message and every change of the state is
//! referred to by a record of the event partition of its namespace and shard, appended under the
//! same guard, so there is never one without the other. Nothing is told to anybody before the
//! journal says that it is durable.
//!
//! Locks, in the order in which they may be held together: the loaded conversations, a
//! conversation, the directory, the journal's.

mod append;
mod behind;
mod cold;
mod context;
mod draft_log;
mod drafts;
mod due;
mod events;
mod expiry;
pub mod feed;
mod fork;
mod known;
mod load;
mod lost;
mod native;
mod pending;
mod read;
mod refusal;
mod retention;
mod slot;
mod state;
#[cfg(test)]
mod tests;
mod unsynced;
mod view;
mod watch;
mod write;

use std::sync::Arc;

use journal::{Journal, StreamId};
use model::{ErrorCode, Name};

pub use append::{Appended, Batch};
pub(crate) use behind::PendingPage;
pub(crate) use cold::Cold;
pub use context::{ContextRead, ShownMessage};
pub use conversations::context::{Cut, Kinds, Policy, Shown, Strategy, Treatment};
pub use conversations::record::{Facts, MessageView};
pub use conversations::resume::{Position, Seen};
pub use conversations::{Change, Cursors, Lifecycle, Origin, Settings, State, Summary};
pub use conversations::{
    Limits, NewMessage, Original, PartFact, PartKind, Status, Stub, call_hash, estimated_tokens,
};
pub use drafts::{Assemble, Assembled, DraftWriter, Finished, NewDraft};
pub(crate) use due::{Look, answered_by, delivery_id};
pub use pending::Pending;
pub use read::{Message, Page, PageRead, Side};
pub use refusal::{Details, Refusal};
pub(crate) use slot::{Rooms, Slot};
pub use state::Changed;
pub use view::{Streaming, View};
pub use watch::{Item, Stored, Watch};

use crate::handle::{Handle, Inner};
use crate::store::Store;
use crate::turn::SYSTEM_ORG;

/// The state of conversation `k` is stream `k` with this bit.
const STATE_BIT: u64 = 1 << 63;

/// What is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Of messages, state and drafts.
    pub limits: Limits,
    /// Those who watch, over all conversations.
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
    /// The same, for a journal whose records may be smaller than what they would let in.
    pub(crate) fn fitting(self, journal: &Journal) -> Self {
        Self {
            limits: self.limits.fitting(journal.record_size_max()),
            ..self
        }
    }
}

/// The conversations of a node. See the module's documentation.
#[derive(Clone, Copy)]
pub struct Conversations<'a> {
    inner: &'a Arc<Inner>,
    store: &'a Store,
    /// What time it is, where that was looked at for many of them.
    moment: Option<Moment>,
}

/// What time it is.
#[derive(Clone, Copy)]
struct Moment {
    now_ns: u64,
    unix_ms: u64,
}

impl Handle {
    /// The conversations; `None` for a node that keeps nothing.
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
    /// What is let in.
    pub fn options(&self) -> &Options {
        &self.store.rooms.options
    }

    fn now_ns(&self) -> u64 {
        let moment = self.moment.map(|it| it.now_ns);
        moment.unwrap_or_else(|| self.inner.ports.clock.now_ns())
    }

    /// Milliseconds since 1970.
    fn unix_ms(&self) -> u64 {
        let moment = self.moment.map(|it| it.unix_ms);
        moment.unwrap_or_else(|| self.inner.ports.clock.unix_ms())
    }
}

/// Whether a name can be a conversation's.
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

/// The stream of a conversation's state.
pub(crate) fn state_of(messages: StreamId) -> StreamId {
    StreamId(messages.0 | STATE_BIT)
}
