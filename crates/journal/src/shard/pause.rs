//! Pausing a reign: for a while nothing new is decided, so that the consensus can add blocks of its
//! own.
//!
//! The index of a block is known when its first record is appended. So consensus can add a block
//! only while none is proposed or under construction.

use super::State;

impl State {
    /// Refuses appends until [`State::resume`] or the end of the reign.
    pub(crate) fn pause(&mut self) {
        self.is_paused = self.reign.is_some();
    }

    /// Accepts appends again.
    pub(crate) fn resume(&mut self) {
        self.is_paused = false;
    }

    /// Returns true if appends are refused for a while.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Returns true if no block is proposed or under construction.
    pub(crate) fn has_no_untaken(&self) -> bool {
        self.proposed.is_empty() && self.building.is_none()
    }
}
