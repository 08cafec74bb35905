//! Damage found by an inspection, and the streams that depend on it.

use journal::{Position, ShardId, StreamId};

/// Dependents listed per damage at most, for a person to read.
const DEPENDENTS_MAX: usize = 64;

/// A damaged range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Path of the file, relative to the journal's directory.
    pub path: String,
    /// Byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The range's positions in the line.
    pub positions: Option<(Position, Position)>,
    /// Description of the damage.
    pub what: String,
    /// Streams with records in the range, as far as known.
    pub dependents: Vec<Dependent>,
    /// There are more dependents than listed.
    pub has_more_dependents: bool,
}

/// A stream, or all streams of a shard, with records in a damaged range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// The shard.
    pub shard: ShardId,
    /// The stream; `None` if it may be any stream of the shard.
    pub stream: Option<StreamId>,
    /// Offset of its first record in the range, if known.
    pub first: Option<u64>,
    /// Source of the information.
    pub evidence: Evidence,
}

/// Reliability of a dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Stated by an undamaged index.
    Index,
    /// Stated by the damaged bytes themselves, so it may be wrong.
    Claim,
}

/// Missing records: a gap between offsets of a stream, or before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingRecords {
    /// The shard.
    pub shard: ShardId,
    /// The stream.
    pub stream: StreamId,
    /// Offset of the first missing record.
    pub first: u64,
    /// Offset of the last missing record.
    pub last: u64,
}

impl Damage {
    /// Damage at the front of a file, or of all of it.
    pub(super) fn of_file(path: impl Into<String>, length: u64, what: impl Into<String>) -> Self {
        Self::at(path, 0, length, what)
    }

    pub(super) fn at(
        path: impl Into<String>,
        offset: u64,
        length: u64,
        what: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            offset,
            length,
            positions: None,
            what: what.into(),
            dependents: Vec::new(),
            has_more_dependents: false,
        }
    }

    pub(super) fn positions(self, from: Position, to: Position) -> Self {
        Self {
            positions: Some((from, to)),
            ..self
        }
    }

    /// Adds a dependent, each stream once.
    pub(super) fn add_dependent(&mut self, dependent: Dependent) {
        let is_same =
            |known: &Dependent| (known.shard, known.stream) == (dependent.shard, dependent.stream);
        if self.dependents.iter().any(is_same) {
            return;
        }
        match self.dependents.len() < DEPENDENTS_MAX {
            true => self.dependents.push(dependent),
            false => self.has_more_dependents = true,
        }
    }
}
