//! The options of conversations.

use conversations::Limits;
use journal::Journal;

/// Limits of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Limits of messages, state and drafts.
    pub limits: Limits,
    /// Maximum number of watchers, over all conversations.
    pub watchers_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            watchers_max: 10_000,
        }
    }
}

impl Options {
    /// Returns the options with limits lowered to the journal's maximum record size.
    pub(crate) fn fitting(self, journal: &Journal) -> Self {
        Self {
            limits: self.limits.fitting(journal.record_size_max()),
            ..self
        }
    }
}
