//! The data plane of AGNTCY SLIM (`dataplane.proto.v1`), as a node needs it.
//!
//! An application opens one stream to a node and sends messages on it. [`Inbox`] splits the stream
//! into messages ([`websocket::Frames`] for a WebSocket), [`Message::scan`] decodes the few fields
//! that a node needs, [`Accepted`] and [`Link`] negotiate the key of the link, [`Forward`] rewrites
//! a message for the next hop, and [`Table`] has the subscriptions. `docs/slim.md` describes the
//! format.
//!
//! Invariants: *any bytes are a message or an error; a forwarded message differs from the received
//! one only in its hop count and its MAC; bytes that a receiver's decoder would reject are rejected
//! here,* so that no application can break the stream of another.
//!
//! This crate knows no sockets, no clocks and no other engine. Outside of [`session`] it knows
//! nothing of sessions: payloads, session headers and fields of later versions are opaque bytes.

mod ack;
mod draft;
mod forward;
mod inbox;
mod legacy;
mod link;
mod mac;
mod message;
mod missed;
mod name;
mod negotiation;
mod rules;
pub mod session;
mod shape;
mod table;
pub mod websocket;
mod wire;

pub use ack::Ack;
pub use draft::Draft;
pub use forward::Forward;
pub use inbox::{Compressed, Inbox, Item};
pub use legacy::is_legacy;
pub use link::{Accepted, Initiator, Link, Refused};
pub use message::{Header, Message, Routed};
pub use missed::Missed;
pub use name::{EncodedName, Key, Name, Prefix};
pub use negotiation::{ConnectionKind, Negotiation};
pub use ring::rand::SystemRandom as Random;
pub use rules::{Act, Rules, Who};
pub use table::{Agent, Match, SubscribeError, Table, Unknown};
pub use wire::Malformed;

/// Version that the node announces. Clients require a version and do not compare it.
pub const VERSION: &str = "3.4.6";

/// Initial TTL of a message.
pub const TTL: u32 = 8;

#[cfg(test)]
mod tests;
