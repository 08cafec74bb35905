//! The data plane of AGNTCY SLIM (`dataplane.proto.v1`), as a node needs it.
//!
//! Applications open one stream to a node and send it messages: [`Inbox`] cuts them out of the
//! stream ([`websocket::Frames`] where that is a WebSocket), [`Message::scan`] reads the few fields
//! that a node acts upon where they lie, [`Accepted`] and [`Link`] agree on a key for the link,
//! [`Forward`] passes a message on, and [`Table`] says to whom. `docs/slim.md` is the layout.
//!
//! Invariants: *any bytes are a message or an error; a message that was passed on differs from the
//! one that came in nothing but its hop count and its MAC; what a receiver's decoder would refuse is
//! refused here,* so that nobody can break another's stream.
//!
//! It knows no sockets, no clocks and no other engine, and outside of [`session`] nothing of sessions:
//! payloads, session headers and fields that a later version adds are bytes.

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

pub use draft::{Ack, Draft};
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

/// The version that a node says it speaks. Clients want a version and compare it with nothing.
pub const VERSION: &str = "3.4.6";

/// The hops that a message is given where it starts.
pub const TTL: u32 = 8;

#[cfg(test)]
mod tests;
