//! Where the records of a partition are, and how they are numbered.
//!
//! What was compacted lies in a stream beside the partition's, behind one another: each compaction
//! writes what it leaves behind what the one before has left, which is cut off when all is written.
//! The records of that stream come before those of the partition's own, which are numbered from
//! [`OWN`] on: so is what the engine knows of them.

use ::topics::record::Compacted;
use journal::StreamId;

use crate::conversations::state_of;
use crate::store::Location;

/// The number of the first record of a partition's own stream.
pub(super) const OWN: u64 = 1 << 62;

/// Marks the stream of what is compacted.
const COMPACTED_BIT: u64 = 1 << 61;

/// What a partition consists of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) at: Location,
    pub(super) compacted: Compacted,
}

/// A run of records in one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) stream: StreamId,
    /// The first of them.
    pub(super) from: u64,
    /// Behind the last of them.
    pub(super) until: u64,
    /// What is added to get their numbers.
    pub(super) base: u64,
}

impl Places {
    /// From where to read a record on. Behind what is compacted comes what is not.
    pub(super) fn run(&self, number: u64) -> Run {
        if number < self.compacted.end {
            return Run {
                stream: compacted_of(self.at.stream),
                from: number,
                until: self.compacted.end,
                base: 0,
            };
        }
        Run {
            stream: self.at.stream,
            from: number.checked_sub(OWN).unwrap_or(self.compacted.rest),
            until: u64::MAX,
            base: OWN,
        }
    }
}

/// The stream of what is compacted of a partition.
pub(super) fn compacted_of(stream: StreamId) -> StreamId {
    StreamId(stream.0 | COMPACTED_BIT)
}

/// All streams of a partition.
pub(super) fn streams_of(stream: StreamId) -> [StreamId; 3] {
    [stream, state_of(stream), compacted_of(stream)]
}
