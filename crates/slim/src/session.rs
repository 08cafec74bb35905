//! Point-to-point sessions of an application: the part of a SLIM library that a bridge needs to
//! call, and be called by, SLIM applications.
//!
//! An [`Endpoint`] holds the sessions of one name. Its input is messages, the time and payloads to
//! send; its output is decisions: packets to send, messages to deliver, sessions that opened or
//! ended. Like all engines it does no I/O and reads no clock.
//!
//! ```text
//! ## asked:   discovery request => reply, join request => reply, welcome => ack      => Open
//! ## asking:  discovery request, join request, welcome, each until it is answered    => Open
//! ## Open:    messages both ways, acknowledged and in order where the session is reliable
//! ##          a heartbeat whenever nothing else was sent => Over (closed | silent)
//! ```
//!
//! Invariants: *a message that is not from a holder of the secret changes nothing; a session
//! accepts messages only from the identity with which it began; a reliable session delivers each
//! message once and in order; every buffer is bounded.*
//!
//! It does not support groups, whose invitations it ignores, or MLS: an invitation with MLS is
//! answered in a way that makes it fail at once.

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

/// Time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Monotonic clock in nanoseconds.
    pub now_ns: u64,
    /// Seconds since 1970, as in tokens.
    pub unix_s: u64,
}

/// Retransmission settings of a reliable session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reliability {
    /// Time between two attempts, in nanoseconds.
    pub interval_ns: u64,
    /// Number of retries of each message.
    pub retries: u32,
}

/// Reason for the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The peer closed it.
    Closed,
    /// This side closed it.
    Left,
    /// The peer stopped sending or acknowledging.
    Silent,
    /// No instance of the name answered.
    Nobody,
}

#[cfg(test)]
mod tests;
