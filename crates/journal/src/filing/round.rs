//! Erase rounds: remove the bytes of all durable erases from the disk.
//!
//! ```text
//! ## (none) => Sealing => Counting => Zeroing => (none)
//! ```
//!
//! *Sealing*: no file is reused without zeroing. The active segment is sealed, because it, or the
//! earlier use of its file, may have such bytes. Then everything before its end is filed.
//! *Counting*: every extent is checked, and those with such bytes are rewritten until none is left; if
//! they are in place, so are the others of their segment, until it is removed.
//! *Zeroing*: lasts until every file that the line has returned by then is zeroed. The first round
//! after a start may have no erase of its own: it waits for the files of an earlier run.

use super::Line;
use super::census::Census;
use super::erasures::{EraseTargets, Erasures};
use super::retained::SegmentUses;
use crate::Position;
use crate::disk::spares::Spares;
use crate::extent::ExtentSet;

/// A round in progress.
#[derive(Debug)]
pub(super) struct Round {
    targets: EraseTargets,
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
        let (targets, inherited) = (erasures.durable(line), erasures.inherited());
        if targets.is_empty() && inherited.is_none() {
            return None;
        }
        // Order matters: files that are taken from the spares from here on are zeroed.
        spares.zero_all(true);
        let mark = spares.mark();
        let until = match inherited {
            Some(until) if targets.is_empty() => until,
            _ => line.seal(),
        };
        Some(Round {
            targets,
            stage: Stage::Sealing { until, mark },
        })
    }

    /// Advances the stage as far as possible. The work in between is done by filing, counting,
    /// merging and zeroing. Returns true when the round is complete.
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
            // A file that the line was taking when the round began needs a second seal.
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
            && !SegmentUses::count(extents, census).has_broken_up()
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
        erasures.settle(&self.targets);
        spares.zero_all(false);
        true
    }

    /// Returns the erases of this round.
    pub(super) fn targets(&self) -> &EraseTargets {
        &self.targets
    }

    /// Returns true if the round waits for files to be zeroed.
    pub(super) fn is_zeroing(&self) -> bool {
        matches!(self.stage, Stage::Zeroing { .. })
    }
}
