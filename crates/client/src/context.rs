//! `Context`: deadline, sender and metadata of a request.

use std::time::Duration;

use tokio::time::Instant;

use crate::Metadata;
use crate::connection::binding::BindingRef;

/// Context of one request. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) binding: BindingRef,
    pub(crate) metadata: Option<Box<Metadata>>,
    pub(crate) deadline: Option<Instant>,
    /// Boxed because most requests have none.
    pub(crate) delivery: Option<Box<Delivery>>,
}

/// Delivery of a message from a mailbox. A reply acknowledges the message; an error, or no reply in
/// time, makes the node deliver it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Offset in the mailbox; later messages have higher offsets.
    pub offset: u64,
    /// Delivery count including this delivery, from 1.
    pub number: u32,
    /// Time of the write, in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
}

impl Context {
    /// Returns the called method; empty for a plain message.
    pub fn method(&self) -> &str {
        &self.binding.method
    }

    /// Returns the name under which the request was received, with its instance; empty when the
    /// caller is connected directly.
    pub fn name(&self) -> &str {
        &self.binding.name
    }

    /// Returns the time at which the caller stops waiting.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the time until the caller's deadline; `None` without a deadline.
    pub fn deadline_remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns the metadata sent with the body.
    pub fn metadata(&self) -> &Metadata {
        static NONE: Metadata = Metadata::new();
        self.metadata.as_deref().unwrap_or(&NONE)
    }

    /// Returns the delivery if the message comes from a mailbox.
    pub fn delivery(&self) -> Option<Delivery> {
        self.delivery.as_deref().copied()
    }

    /// Returns the sender's name if a node added it.
    pub fn source(&self) -> Option<&str> {
        self.metadata().text(wire::SOURCE)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("method", &self.method())
            .field("name", &self.name())
            .field("deadline", &self.deadline)
            .field("metadata", self.metadata())
            .finish()
    }
}
