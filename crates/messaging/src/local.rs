//! State of a connection that only the task reading from it uses.

use std::sync::Arc;

use journal::Round;
use model::Name;
use platform::Tally;
use routing::{ConnectionId, Ticket};

use crate::mailboxes::{Outcome, Slot};
use crate::peer::Peer;

/// State that only the reading task uses.
#[derive(Default)]
pub(crate) struct Local {
    /// Number of bindings made.
    pub(crate) bindings: u64,
    /// The calls of the client; the index is the slot of the tag.
    pub(crate) paths: Vec<Option<Path>>,
    /// The appends that the journal's writer was not notified of yet.
    pub(crate) round: Option<Round>,
    /// True if the listener ends rounds; otherwise each turn is one round.
    pub(crate) keeps_rounds: bool,
    /// Mailboxes that continue at the end of this turn, because writes to them are durable.
    pub(crate) written: Vec<Arc<Slot>>,
    /// Answers to messages from mailboxes in this turn.
    pub(crate) outcomes: Vec<(Arc<Slot>, u64, Outcome)>,
    /// Names subscribed to in this turn.
    pub(crate) joined: Vec<Name>,
    /// Peers to flush at the end of this turn.
    pub(crate) dirty: Vec<Arc<Peer>>,
    /// Counts of this turn.
    pub(crate) tally: Tally,
    /// One-way messages consumed since the client last got credit.
    pub(crate) consumed_messages: u32,
    /// Their size in bytes.
    pub(crate) consumed_bytes: u64,
}

/// The responder that a call of this client was routed to.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    /// The generation of the caller's tag.
    pub(crate) generation: u32,
    pub(crate) responder: ConnectionId,
    /// The responder's ticket of the call.
    pub(crate) ticket: Ticket,
}
