//! What surrounds a request: how long it may take, who sent it, what came along with it.

use std::time::Duration;

use tokio::time::Instant;

use crate::Metadata;
use crate::binding::Bound;

/// The surroundings of one request. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) binding: Bound,
    pub(crate) metadata: Option<Box<Metadata>>,
    pub(crate) deadline: Option<Instant>,
    /// In a box because most requests have none.
    pub(crate) delivery: Option<Box<Delivery>>,
}

/// Where a message from a mailbox comes from. Answering it acknowledges it; refusing it, or not
/// answering in time, has it delivered again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its place in the mailbox; later messages have higher ones.
    pub offset: u64,
    /// How often it is delivered with this time, from 1.
    pub number: u32,
    /// When it was written, in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
}

impl Context {
    /// The method that was called; empty for a plain message.
    pub fn method(&self) -> &str {
        &self.binding.method
    }

    /// The name under which the request was received, instance included; empty when the caller is
    /// connected directly.
    pub fn name(&self) -> &str {
        &self.binding.name
    }

    /// When the caller stops waiting.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// How much of the caller's time is left; `None` when it waits for ever.
    pub fn deadline_remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// What came along with the body.
    pub fn metadata(&self) -> &Metadata {
        static NONE: Metadata = Metadata::new();
        self.metadata.as_deref().unwrap_or(&NONE)
    }

    /// Where it comes from, when it was written to a mailbox.
    pub fn delivery(&self) -> Option<Delivery> {
        self.delivery.as_deref().copied()
    }

    /// The sender's name, when a node added it.
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
