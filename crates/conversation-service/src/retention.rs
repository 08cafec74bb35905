//! Retention: trims the oldest messages of a conversation with a limit.
//!
//! It runs now and then while the conversation is in use, independent of appends: at least the
//! configured number of messages is retained, and not many more for long.

use store::Location;

use super::Conversations;
use super::slot::Room;

impl Conversations {
    /// Trims the messages that exceed the conversation's retention settings.
    pub(super) fn retain(&self, room: &mut Room) {
        let settings = &room.engine.state().settings;
        let (keep_last, keep_bytes) = (settings.keep_last, settings.keep_bytes);
        let Some(location) = room.location.filter(|_| keep_last > 0 || keep_bytes > 0) else {
            return;
        };
        let start = room.engine.start();
        let mut wanted = start;
        if keep_last > 0 {
            let retracted = &room.engine.state().retracted;
            let first = retracted.first_of_newest(start, room.engine.head(), keep_last);
            wanted = wanted.max(first.unwrap_or(start));
        }
        if keep_bytes > 0 {
            wanted = wanted.max(self.first_of_bytes(room, location, keep_bytes));
        }
        let count = wanted - start;
        let is_worth_it = count > 0 && count >= (room.engine.head() + 1 - wanted) / 8;
        if is_worth_it {
            self.trim_room(room, location, wanted);
        }
    }

    /// Returns the first of the newest messages that have at least `bytes_max` bytes together. A
    /// lookup that fails is repeated the next time.
    fn first_of_bytes(&self, room: &Room, location: Location, bytes_max: u64) -> u64 {
        let Location { shard, stream } = location;
        let offset = self
            .store
            .journal
            .offset_for_bytes(shard, stream, bytes_max);
        offset.map_or(0, |offset| room.engine.seq(offset))
    }

    fn trim_room(&self, room: &mut Room, location: Location, start: u64) {
        let Location { shard, stream } = location;
        let offset = room.engine.offset(start);
        let mut guard = self.store.journal.lock(shard, self.platform.unix_ms());
        // A failed trim is repeated the next time.
        if let Ok(ticket) = guard.trim(stream, offset) {
            drop(guard);
            room.ticket = Some(ticket);
            room.engine.trimmed(start);
        }
    }
}
