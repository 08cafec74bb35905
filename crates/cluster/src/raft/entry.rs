//! Entries of the replicated log.

use std::fmt;

use bytes::Bytes;
use openraft::EntryPayload;
use openraft::entry::RaftEntry;

use super::types::{LogId, Membership, Term, Types};

type Payload = <Types as openraft::RaftTypeConfig>::Payload;

/// Records that a leader has decided: the content of a block.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Time of the last record, in milliseconds since 1970.
    pub(crate) time_ms: u64,
    /// The records, back to back.
    pub(crate) body: Bytes,
}

/// An entry with the time of its block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) log_id: LogId,
    /// Time of the block, in milliseconds since 1970. `None` until the leader has appended an entry
    /// without records.
    pub(crate) time_ms: Option<u64>,
    pub(crate) payload: Payload,
}

impl RaftEntry for Entry {
    type CommittedLeaderId = Term;
    type Payload = Payload;

    fn new(log_id: LogId, payload: Payload) -> Entry {
        let time_ms = match &payload {
            EntryPayload::Normal(block) => Some(block.time_ms),
            EntryPayload::Blank | EntryPayload::Membership(_) => None,
        };
        Entry {
            log_id,
            time_ms,
            payload,
        }
    }

    fn log_id_parts(&self) -> (&Term, u64) {
        (&self.log_id.leader_id, self.log_id.index)
    }

    fn set_log_id(&mut self, log_id: LogId) {
        self.log_id = log_id;
    }

    fn get_membership(&self) -> Option<Membership> {
        match &self.payload {
            EntryPayload::Membership(membership) => Some(membership.clone()),
            EntryPayload::Blank | EntryPayload::Normal(_) => None,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.log_id, self.payload)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block of {} bytes", self.body.len())
    }
}
