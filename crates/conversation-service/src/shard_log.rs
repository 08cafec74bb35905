//! The log of drafts of one shard: which drafts are open in it, and how far it is trimmed.

use conversations::draft::{Cut, Log};
use journal::{AppendError, Guard, StreamId};

/// The stream of a shard's log.
pub(super) const STREAM: StreamId = StreamId(1 << 62);

/// A shard's log.
#[derive(Default)]
pub(super) struct ShardLog {
    pub(super) open: Log,
    /// The time since which open drafts are known to delay an erase.
    pub(super) erasing_ns: Option<u64>,
}

impl ShardLog {
    /// Trims the log as far as possible, under a guard.
    pub(super) fn cut(&mut self, guard: &mut Guard<'_>) -> Result<(), AppendError> {
        let cut = self.open.to_cut(guard.next(STREAM));
        match cut {
            Cut::Trim(before) => guard.trim(STREAM, before)?,
            Cut::Erase(before) => {
                self.erasing_ns = None;
                guard.erase_before(STREAM, before)?
            }
        };
        self.open.cut(cut);
        Ok(())
    }
}
