//! What is done now and then: emptying what was deleted, keeping starts short, letting go what is old.

use journal::{Status, Ticket};

use super::Topics;
use super::state::State;
use crate::conversations::state_of;
use crate::store::Location;

impl Topics {
    /// Looks after everything; whether there is something to look after soon.
    pub(crate) fn sweep(&self) -> bool {
        self.state.empty_doomed(self.now_ms())
    }
}

impl State {
    /// Empties streams of topics that were deleted, once that is durable.
    fn empty_doomed(&self, now_ms: u64) -> bool {
        let mut doomed = self.doomed.lock();
        let is_durable = |ticket: &Ticket| self.journal.status(*ticket) == Status::Durable;
        let due: Vec<_> = doomed
            .extract_if(.., |(ticket, _)| is_durable(ticket))
            .collect();
        let is_waiting = !doomed.is_empty();
        drop(doomed);
        for (_, places) in due {
            self.empty_now(&places, now_ms);
        }
        is_waiting
    }

    /// Empties streams. What cannot be emptied now is emptied after the next start.
    pub(super) fn empty_now(&self, places: &[Location], now_ms: u64) {
        for at in places {
            for stream in [at.stream, state_of(at.stream)] {
                if self.empty(Location { stream, ..*at }, now_ms).is_err() {
                    return;
                }
            }
        }
    }

    fn empty(&self, at: Location, now_ms: u64) -> Result<(), journal::AppendError> {
        let Location { shard, stream } = at;
        let state = self.journal.stream(shard, stream);
        if state.is_some_and(|it| it.start < it.next) {
            self.journal.lock(shard, now_ms).trim(stream, END)?;
        }
        Ok(())
    }
}

/// Behind everything that a stream can hold.
const END: u64 = u64::MAX;
