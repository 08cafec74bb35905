//! The state of an open draft in memory, and the port that assembles its message.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use bytes::Bytes;
use conversations::draft::{AbandonedDraft, Draft};
use conversations::record::DraftOpen;
use conversations::{Limits, PartFact};
use journal::Ticket;
use store::Location;

/// Assembles a message from a draft's chunks, whose format the node does not know.
pub trait Assemble: Send + Sync {
    /// Returns the message of these chunks, in order; the chunks may be incomplete. The message
    /// is within the limits.
    fn assemble(
        &self,
        limits: &Limits,
        chunks: &mut dyn Iterator<Item = &[u8]>,
    ) -> AssembledContent;
}

/// The content assembled from chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssembledContent {
    /// The parts of the message.
    pub parts: Vec<u8>,
    /// The facts of each part, in order.
    pub facts: Vec<PartFact>,
    /// The metadata from the chunks, if any; it replaces the metadata given at the opening.
    pub metadata: Option<Vec<u8>>,
}

/// A draft that is being streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamedDraft {
    /// The draft's number, as in watched items.
    pub draft: u64,
    /// The id of the message that the draft becomes.
    pub id: String,
    /// The author's name; may be empty.
    pub from: String,
}

/// An open draft in memory.
pub(super) struct OpenDraft {
    /// The draft's number: the offset of its opening in the log.
    pub(super) number: u64,
    pub(super) id: Arc<str>,
    pub(super) opened_ms: u64,
    pub(super) role: String,
    pub(super) from: String,
    pub(super) metadata: Vec<u8>,
    pub(super) draft: Draft,
    /// The ticket of the opening: watchers see nothing of the draft before it is durable.
    pub(super) opening: Option<Ticket>,
    /// The author's waker, for a request to stop.
    pub(super) author: Option<Waker>,
    /// True if the author was asked to stop; watchers read it even after the end.
    pub(super) is_stopped: Arc<AtomicBool>,
    /// The final chunk; watchers read it even after the end.
    pub(super) last: Arc<OnceLock<Bytes>>,
    /// True if the author is gone and the message could not be written yet.
    pub(super) is_lost: bool,
}

impl OpenDraft {
    /// Restores a draft that was open when the node stopped; it has no author.
    pub(super) fn lost(lost: AbandonedDraft) -> Self {
        Self {
            number: lost.number,
            id: lost.id.as_str().into(),
            opened_ms: lost.opened_ms,
            role: lost.role,
            from: lost.from,
            metadata: lost.metadata,
            draft: lost.draft,
            opening: None,
            author: None,
            is_stopped: Arc::default(),
            last: Arc::default(),
            is_lost: true,
        }
    }

    /// Returns the public view of the draft.
    pub(super) fn streaming(&self) -> StreamedDraft {
        StreamedDraft {
            draft: self.number,
            id: self.id.as_ref().to_owned(),
            from: self.from.clone(),
        }
    }

    /// Returns the record of its opening in the log.
    pub(super) fn record(&self, location: Location) -> DraftOpen<'_> {
        DraftOpen {
            conversation: location.stream.0,
            opened_ms: self.opened_ms,
            id: &self.id,
            role: &self.role,
            from: &self.from,
            metadata: &self.metadata,
        }
    }
}
