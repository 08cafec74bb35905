//! Notes in a mailbox's stream, and the shortening of the stream.
//!
//! Changes are appended as notes. Once the stream is long enough, the ids of the newest writes are
//! repeated, and all records before the oldest message are trimmed. A message that holds back too
//! many later records is written again at the end. The blocks of a shard become durable in order,
//! so the repeated data is durable before the trim.

use journal::{AppendError, Journal};
use mailbox::Straggler;
use mailbox::record::{self, Moved, Note};
use store::{Location, Store};

use super::lookup::{StoredWrite, WriteLookup};
use super::slot::State;

/// Maximum size of messages moved while the mailbox is locked, in bytes; a single message may be
/// larger.
const MOVED_AT_ONCE: usize = 1 << 20;

/// The result of moving messages.
enum MoveProgress {
    /// All messages were moved.
    Complete,
    /// The maximum per call was reached.
    Partial,
    /// The next message cannot be moved now.
    Stuck,
}

impl State {
    /// Appends notes about changes, and shortens the stream if it is long. Notes that cannot be
    /// appended are lost: their messages will be delivered again after a restart.
    pub(super) fn note(&mut self, store: &Store, now_ms: u64) -> Result<(), AppendError> {
        let journal = &*store.journal;
        let notes = self.mailbox.take_notes();
        let Some(location) = self.location else {
            return Ok(());
        };
        if !notes.is_empty() {
            self.append_notes(journal, location, &notes, now_ms)?;
        }
        if self.stream.span.is_long() {
            self.shorten(store, location, now_ms);
        }
        Ok(())
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

    /// Repeats the ids and trims the stream before the mailbox is unloaded, if most of it is
    /// obsolete, as the mailbox may never be loaded again. Returns whether it did.
    pub(super) fn shorten_before_unload(&mut self, journal: &Journal, now_ms: u64) -> bool {
        let Some(location) = self.location else {
            return false;
        };
        let span = &self.stream.span;
        let oldest = self.mailbox.oldest();
        let done_with = span.held() - oldest.map_or(0, |oldest| span.held_from(oldest));
        let ids = (self.mailbox.ids().count() * record::ID_SIZE) as u64;
        // The repeated ids must be smaller than the trimmed data, or a mailbox would never come to
        // rest.
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
            // Work that failed is retried once the stream has grown by as much again.
            (true, MoveProgress::Complete) | (_, MoveProgress::Stuck) => self.stream.span.rest(),
            (true, MoveProgress::Partial) | (false, _) => {}
        }
    }

    /// Repeats the ids of the newest writes and trims all records before the oldest message.
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

    /// Writes messages that hold back too many later records again, at the end.
    fn move_stragglers(&mut self, store: &Store, location: Location, now_ms: u64) -> MoveProgress {
        let mut fetched = std::mem::take(&mut self.fetched);
        let mut lookup = WriteLookup::new(store, location, &mut fetched);
        let done = self.move_from(&mut lookup, &store.journal, location, now_ms);
        self.fetched = fetched;
        done
    }

    fn move_from(
        &mut self,
        lookup: &mut WriteLookup<'_>,
        journal: &Journal,
        location: Location,
        now_ms: u64,
    ) -> MoveProgress {
        let mut moved_bytes = 0;
        while let Some(straggler) = self.straggler() {
            if moved_bytes >= MOVED_AT_ONCE {
                return MoveProgress::Partial;
            }
            let Some(stored) = lookup.find(straggler.record) else {
                return match lookup.is_missing() {
                    true => MoveProgress::Partial,
                    false => MoveProgress::Stuck,
                };
            };
            match self.move_one(journal, location, straggler, &stored, now_ms) {
                Ok(size) => moved_bytes += size,
                Err(_) => return MoveProgress::Stuck,
            }
        }
        MoveProgress::Complete
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
        stored: &StoredWrite,
        now_ms: u64,
    ) -> Result<usize, AppendError> {
        let moved = Moved {
            offset: straggler.offset,
            written_ms: stored.written_ms,
            state: straggler.state,
            write: stored.write(),
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
