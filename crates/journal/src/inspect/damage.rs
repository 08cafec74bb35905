//! What is damaged, and who depends on it.

use crate::{Position, ShardId, StreamId};

/// Dependents of one damage that are listed; a person reads them.
const DEPENDENTS_MAX: usize = 64;

/// Bytes of a file that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the journal's directory.
    pub path: String,
    /// Where in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// The places of the line that stood there.
    pub positions: Option<(Position, Position)>,
    /// In which way.
    pub what: String,
    /// Who has records there, as far as that can be told.
    pub dependents: Vec<Dependent>,
    /// There are more of them than are listed.
    pub has_more_dependents: bool,
}

/// A stream, or all streams of a shard, with records in a damaged place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// The shard.
    pub shard: ShardId,
    /// The stream; none if it may be any of the shard.
    pub stream: Option<StreamId>,
    /// Its first offset there, if that is known.
    pub first: Option<u64>,
    /// How that is known.
    pub evidence: Evidence,
}

/// How sure it is that a stream depends on a damaged place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The index, which is whole, says so.
    Index,
    /// The damaged bytes say so: which is true unless that is what is damaged.
    Claim,
}

/// Records that should be there: the stream's neighbouring offsets, or its end, say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The shard.
    pub shard: ShardId,
    /// The stream.
    pub stream: StreamId,
    /// The first offset.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Damage {
    /// All of a file, or its front.
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

    /// Adds who depends on it, each stream once.
    pub(super) fn depends(&mut self, dependent: Dependent) {
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
