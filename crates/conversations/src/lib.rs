//! The conversation engine: numbers messages, recognizes retries, builds context windows and
//! schedules webhook calls.
//!
//! A conversation is an append-only list of messages with dense sequence numbers from 1. All other
//! data is derived from that list or is a small state. The engine only decides. It receives *facts*
//! about a message (role, tokens, kinds and sizes of its parts, tool call ids) and treats parts and
//! metadata as opaque bytes. The shell stores records, knows when they are durable, and supplies
//! the time.
//!
//! Invariants: *a sequence number is never given to two messages; an id identifies one message as
//! long as that is retained, retracted or not; a window never exceeds its budget and never separates a tool call from
//! its result; an agent's cursor moves only with its answer.*
//!
//! Durable data is encoded as [`record`]s, which the shell appends to streams.

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
mod retracted;
mod state;

pub use conversation::{
    Conversation, Retract, RetractDecision, RetractExtent, RetractPlan, Update,
};
pub use decision::{Decision, Lookup, MessageSeq, Plan, Refusal};
pub use ids::{IDS_KEPT, id_hash};
pub use limits::{ID_LENGTH_MAX, Invalid, Limits, Problem, ROLE_LENGTH_MAX, WHO_LENGTH_MAX};
pub use message::{
    NewMessage, Original, PartFact, PartKind, Status, Stub, call_hash, estimated_tokens,
};
pub use retracted::{Retracted, SeqRange};
pub use state::{Change, Cleared, Cursors, Lifecycle, Origin, Settings, State, Summary};
