//! The conversation engine: which message gets which number, what of it a model is shown, and who
//! is to be told.
//!
//! A conversation is an append-only list of messages with a dense sequence from 1. Everything else
//! is a view of that list or a little state beside it. The engine only decides: it is handed *facts*
//! about a message (its role, its tokens, the kinds and sizes of its parts, the calls they belong
//! to) and carries its parts and metadata as opaque bytes. Where records are and when they are
//! durable is the shell's to say, and so is the time.
//!
//! Invariants: *a sequence number that was given to a message is never given to another; an id
//! names one message for as long as that is kept; a window is never larger than its budget and
//! never parts a tool's call from its result; an agent's cursor moves only with its answer.*
//!
//! What must outlive the memory are [`record`]s, which streams keep in order.

pub mod context;
mod conversation;
mod decision;
pub mod delivery;
pub mod draft;
mod ids;
mod limits;
mod message;
pub mod record;
pub mod resume;
mod state;

pub use conversation::{Conversation, Update};
pub use decision::{Decision, Lookup, Place, Plan, Refusal};
pub use ids::{IDS_KEPT, id_hash};
pub use limits::{ID_LENGTH_MAX, Invalid, Limits, Problem, ROLE_LENGTH_MAX, WHO_LENGTH_MAX};
pub use message::{
    NewMessage, Original, PartFact, PartKind, Status, Stub, call_hash, estimated_tokens,
};
pub use state::{Change, Cursors, Lifecycle, Origin, Settings, State, Summary};
