//! Carrying out erases: a round takes all that are durable and drives their bytes out.
//!
//! ```text
//! ## (none) => Sealing => Counting => Zeroing => (none)
//! ```
//!
//! *Sealing*: no file is used again unzeroed; the active segment ends, because it may hold the
//! bytes, or its file may from before; everything before its end gets filed. *Counting*: every
//! extent is looked at and those that hold such bytes are written anew, until none does.
//! *Zeroing*: until every file is zeroed that came back from the line before then. The first round
//! after a start may have no erase of its own: it waits for the files of an earlier run.

use super::Line;
use super::census::Census;
use super::erasures::{Erasures, Taken};
use crate::Position;
use crate::extent::ExtentSet;
use crate::spares::Spares;

/// A round that is under way.
#[derive(Debug)]
pub(super) struct Round {
    taken: Taken,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Sealing { until: Position, mark: u64 },
    Counting { generation: u64 },
    Zeroing { before: u64 },
}

impl Round {
    /// Begins one, if there is a durable erase to carry out or an earlier run may have left some.
    pub(super) fn begin(line: &dyn Line, erasures: &Erasures, spares: &Spares) -> Option<Round> {
        let (taken, inherited) = (erasures.durable(line), erasures.inherited());
        if taken.is_empty() && inherited.is_none() {
            return None;
        }
        // In this order: what is taken from the spares from here on is zeroed.
        spares.zero_all(true);
        let mark = spares.mark();
        let until = match inherited {
            Some(until) if taken.is_empty() => until,
            _ => line.seal(),
        };
        Some(Round {
            taken,
            stage: Stage::Sealing { until, mark },
        })
    }

    /// Goes on as far as it can; the work between is everybody's: filing, counting, merging,
    /// zeroing. True: all of it is done.
    pub(super) fn advance(
        &mut self,
        line: &dyn Line,
        filed: Position,
        extents: &ExtentSet,
        census: &mut Census,
        erasures: &Erasures,
        spares: &Spares,
    ) -> bool {
        if let Stage::Sealing { until, mark } = self.stage
            && filed >= until
        {
            // A file that was being taken just when the round began is sealed by a second call.
            self.stage = match spares.is_stale_before(mark) {
                true => Stage::Sealing {
                    mark,
                    until: line.seal(),
                },
                false => Stage::Counting {
                    generation: census.call(),
                },
            };
        }
        if let Stage::Counting { generation } = self.stage
            && census.has_counted(extents, generation)
            && !extents
                .iter()
                .any(|extent| census.count(extent.identity().number).is_unerased)
        {
            self.stage = Stage::Zeroing {
                before: spares.mark(),
            };
        }
        let Stage::Zeroing { before } = self.stage else {
            return false;
        };
        if spares.is_dirty_before(before) {
            return false;
        }
        erasures.settle(&self.taken);
        spares.zero_all(false);
        true
    }

    /// What it drives out.
    pub(super) fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Whether it waits for files to be zeroed.
    pub(super) fn is_zeroing(&self) -> bool {
        matches!(self.stage, Stage::Zeroing { .. })
    }
}
