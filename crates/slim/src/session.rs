//! A session's end, for point-to-point sessions: what a SLIM library does inside an application, so
//! that something that is no SLIM application can be called by one, and call one.
//!
//! An [`Endpoint`] holds the sessions of one name. It is handed messages, the time and what is to be
//! said, and decides: packets to send, messages to deliver, sessions that are open or over. Like all
//! engines it does no I/O and looks at no clock.
//!
//! ```text
//! ## asked:   discovery request => reply, join request => reply, welcome => ack      => Open
//! ## asking:  discovery request, join request, welcome, each until it is answered    => Open
//! ## Open:    messages both ways, acknowledged and in order where the session is reliable
//! ##          a heartbeat whenever nothing else was sent => Over (closed | silent)
//! ```
//!
//! Invariants: *what is not from a holder of the secret changes nothing; a session answers to the
//! identity that it began with and to no other; a reliable session delivers each message once and in
//! order; every buffer has a bound.*
//!
//! It does not know groups, whose invitations it does not hear, and no MLS: whoever asks for it is
//! answered in a way that fails his invitation at once.

mod arrivals;
mod content;
mod dialogue;
mod endpoint;
mod full_name;
mod identity;
mod incoming;
mod packet;
mod signing;
mod turn;
mod unacked;

pub use endpoint::{Decision, Endpoint, Limits, NotPublished, Received, Rejected, SessionId};
pub use full_name::FullName;
pub use identity::{Entropy, Identity, SECRET_SIZE_MIN, ShortSecret, Untrusted};
pub use packet::Packet;

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// On a clock that never goes back.
    pub now_ns: u64,
    /// On everybody's clock: seconds since 1970, which tokens carry.
    pub unix_s: u64,
}

/// How a reliable session tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reliability {
    /// Between two tries.
    pub interval_ns: u64,
    /// Tries after the first, for each message.
    pub retries: u32,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The peer said so.
    Closed,
    /// We said so.
    Left,
    /// The peer says nothing any more, or does not acknowledge.
    Silent,
    /// Nobody of that name answered.
    Nobody,
}

#[cfg(test)]
mod tests;
