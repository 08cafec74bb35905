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
//! This crate knows stored messages and events. It does not know connections, JSON, HTTP, and neither
//! views nor webhooks, which read its events and its changes.
//!
//! Lock order: the map of loaded conversations, a conversation, the directory, the journal's locks.

mod abandoned_drafts;
mod agent_changes;
mod agent_work;
mod append;
pub mod archive;
mod context;
mod draft_log;
mod drafts;
mod error;
mod events;
mod expiry;
pub mod feed;
mod fork;
mod history_lookup;
mod load;
mod message_lookup;
mod open_draft;
mod options;
mod read;
mod read_pages;
mod retention;
mod retract;
mod service;
mod shard_log;
mod slot;
mod state;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod turns;
mod unsynced;
mod view;
mod watch;
mod write;

pub use agent_changes::AgentChanges;
pub use agent_work::{AgentTurn, answered_by, delivery_id};
pub use append::{Appended, Batch};
pub use context::{ContextRead, ShownMessage};
pub use conversations::context::{Cut, Kinds, Policy, Strategy, Treatment, WindowMessage};
pub use conversations::record::{Facts, MessageView};
pub use conversations::resume::{DraftPosition, Position};
pub use conversations::{Change, Cursors, Lifecycle, Origin, Settings, State, Summary};
pub use conversations::{
    Limits, NewMessage, Original, PartFact, PartKind, RetractExtent, Retracted, SeqRange, Status,
    Stub, call_hash, estimated_tokens,
};
pub use drafts::{DraftResult, DraftWriter, NewDraft};
pub use error::{ConversationError, Details, Pending};
pub use open_draft::{Assemble, AssembledContent, StreamedDraft};
pub use options::Options;
pub use read::{Message, Page, PageRead, Side};
pub use read_pages::MessageRange;
pub use retract::{RetractOutcome, RetractRequest};
pub use service::Conversations;
pub use state::ChangeResult;
pub use turns::{ConversationRef, MessageFollower};
pub use view::View;
pub use watch::{Item, StoredMessage, Watch};
