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
