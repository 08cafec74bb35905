//! What a mailbox's stream is told, and how it is kept short.
//!
//! What has happened is appended as notes. When there is enough of it, the ids of the newest writes
//! are repeated and everything before the oldest message is cut off; a message that keeps too much
//! behind it is written once more. A shard's blocks become durable in their order: what a cut takes
//! off was repeated before it.

use ::mailbox::Straggler;
use ::mailbox::record::{self, Moved, Note};
use journal::{AppendError, Journal};

use super::Store;
use super::directory::Location;
use super::mailbox::State;
use super::shelf::{Lying, Shelf};

/// Bytes that are written once more while the mailbox is held; one message may have more.
const MOVED_AT_ONCE: usize = 1 << 20;

/// What could be done for a stream.
enum Done {
    /// All there was to do.
    All,
    /// As much as is done at once.
    Some,
    /// The rest cannot be done now.
    Stuck,
}

impl State {
    /// Appends what has happened, and forgets what nobody needs. What cannot be appended now is
    /// lost: it is about messages that will be handed out once more.
    pub(super) fn note(&mut self, store: &Store, now_ms: u64) {
        let journal = &*store.journal;
        let notes = self.mailbox.take_notes();
        let Some(location) = self.location else {
            return;
        };
        // Whoever cannot append is told so when he writes.
        if !notes.is_empty()
            && self
                .append_notes(journal, location, &notes, now_ms)
                .is_err()
        {
            return;
        }
        if self.stream.span.is_long() {
            self.shorten(store, location, now_ms);
        }
    }

    fn append_notes(
        &mut self,
        journal: &Journal,
        location: Location,
        notes: &[Note],
        now_ms: u64,
    ) -> Result<(), AppendError> {
        let mut bytes = Vec::new();
        record::encode_notes(notes, &mut bytes);
        let mut guard = journal.lock(location.shard, now_ms);
        let appended = guard.append(location.stream, None, record::NOTES, &bytes)?;
        drop(guard);
        self.stream.push(appended, bytes.len());
        Ok(())
    }

    /// Repeats the ids and cuts the stream off if most of it is done with, before the mailbox is let
    /// go: it may be for ever. Whether it did.
    pub(super) fn leave_little(&mut self, journal: &Journal, now_ms: u64) -> bool {
        let Some(location) = self.location else {
            return false;
        };
        let span = &self.stream.span;
        let oldest = self.mailbox.oldest();
        let done_with = span.held() - oldest.map_or(0, |oldest| span.held_from(oldest));
        let ids = (self.mailbox.ids().count() * record::ID_SIZE) as u64;
        // What is repeated is less than what goes, or a mailbox would never come to rest.
        done_with > 2 * ids && self.cut(journal, location, oldest, now_ms).is_ok()
    }

    fn shorten(&mut self, store: &Store, location: Location, now_ms: u64) {
        let journal = &*store.journal;
        let moved = self.move_stragglers(store, location, now_ms);
        let oldest = self.mailbox.oldest();
        let start = self.stream.span.start();
        let is_cut = match oldest.is_none_or(|oldest| oldest > start) {
            true => self.cut(journal, location, oldest, now_ms).is_ok(),
            false => false,
        };
        match (is_cut, moved) {
            // What cannot be done is tried again when there is as much to do once more.
            (true, Done::All) | (_, Done::Stuck) => self.stream.span.rest(),
            (true, Done::Some) | (false, _) => {}
        }
    }

    /// Repeats the ids of the newest writes and cuts off what lies before the oldest message.
    fn cut(
        &mut self,
        journal: &Journal,
        location: Location,
        oldest: Option<u64>,
        now_ms: u64,
    ) -> Result<(), AppendError> {
        let mut bytes = Vec::new();
        record::encode_ids(self.mailbox.ids(), &mut bytes);
        let mut guard = journal.lock(location.shard, now_ms);
        let appended = guard.append(location.stream, None, record::IDS, &bytes)?;
        let start = oldest.map_or(appended.offset, |oldest| oldest.min(appended.offset));
        guard.trim(location.stream, start)?;
        drop(guard);
        self.stream.push(appended, bytes.len());
        match start == appended.offset {
            true => self.stream.span.cut_to_last(start, bytes.len()),
            false => self.stream.span.cut(start),
        }
        Ok(())
    }

    /// Writes messages once more at the end that keep too much behind them.
    fn move_stragglers(&mut self, store: &Store, location: Location, now_ms: u64) -> Done {
        let mut fetched = std::mem::take(&mut self.fetched);
        let mut shelf = Shelf::new(store, location, &mut fetched);
        let done = self.move_from(&mut shelf, &store.journal, location, now_ms);
        self.fetched = fetched;
        done
    }

    fn move_from(
        &mut self,
        shelf: &mut Shelf<'_>,
        journal: &Journal,
        location: Location,
        now_ms: u64,
    ) -> Done {
        let mut moved_bytes = 0;
        while let Some(straggler) = self.straggler() {
            if moved_bytes >= MOVED_AT_ONCE {
                return Done::Some;
            }
            let Some(lying) = shelf.find(straggler.record) else {
                return match shelf.is_missing() {
                    true => Done::Some,
                    false => Done::Stuck,
                };
            };
            match self.move_one(journal, location, straggler, &lying, now_ms) {
                Ok(size) => moved_bytes += size,
                Err(_) => return Done::Stuck,
            }
        }
        Done::All
    }

    fn straggler(&self) -> Option<Straggler> {
        let oldest = self.mailbox.oldest()?;
        let held = self.stream.span.held_from(oldest);
        self.mailbox.straggler(held)
    }

    fn move_one(
        &mut self,
        journal: &Journal,
        location: Location,
        straggler: Straggler,
        lying: &Lying,
        now_ms: u64,
    ) -> Result<usize, AppendError> {
        let moved = Moved {
            offset: straggler.offset,
            written_ms: lying.written_ms,
            standing: straggler.standing,
            write: lying.write(),
        };
        let mut bytes = Vec::with_capacity(moved.write.len() + Moved::HEAD_SIZE);
        moved.encode(&mut bytes);
        let mut guard = journal.lock(location.shard, now_ms);
        let appended = guard.append(location.stream, None, record::MOVED, &bytes)?;
        drop(guard);
        self.stream.push(appended, bytes.len());
        self.mailbox.moved(straggler.offset, appended.offset);
        Ok(bytes.len())
    }
}
