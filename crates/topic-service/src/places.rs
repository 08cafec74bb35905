//! Locations and numbering of a partition's records.
//!
//! Compacted records are in a second stream, after those of the previous compaction: a compaction
//! appends what it retains and then trims the previous result. Records of the compacted stream
//! precede those of the partition's own stream, whose numbers start at [`OWN`]; the engine uses the
//! same numbers.

use journal::StreamId;
use topics::record::Compacted;

use store::Location;
use store::Store;

/// The number of the first record of a partition's own stream.
pub(super) const OWN: u64 = 1 << 62;

/// The bit that marks the id of a compacted stream.
const COMPACTED_BIT: u64 = 1 << 61;

/// The streams of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) at: Location,
    pub(super) compacted: Compacted,
}

/// A run of records in one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) stream: StreamId,
    /// The first record.
    pub(super) from: u64,
    /// The end of the run (exclusive).
    pub(super) until: u64,
    /// The difference between a record's number and its offset in the stream.
    pub(super) base: u64,
}

impl Places {
    /// Returns the run that contains a record; the own stream follows the compacted one.
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

/// Returns the compacted stream of a partition.
pub(super) fn compacted_of(stream: StreamId) -> StreamId {
    StreamId(stream.0 | COMPACTED_BIT)
}

/// Returns all streams of a partition.
pub(super) fn streams_of(stream: StreamId) -> [StreamId; 3] {
    [stream, Store::companion(stream), compacted_of(stream)]
}
