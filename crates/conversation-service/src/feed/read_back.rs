//! Reads trimmed messages from the archive.
//!
//! Stored messages are read from the disk; trimmed ones are requested and joined with the rest: a
//! page is whole or refused, never with a gap.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use ::journal::{ReadLimit, Record};
use conversations::record;

use crate::archive::{ArchiveQuery, ArchiveRead, ArchiveUnavailable, ArchiveView, ArchivedMessage};
use crate::read::MessageLocation;
use crate::{ConversationError, Conversations};

impl Conversations {
    /// Returns the state of the archive, if there is one.
    pub fn archive(&self) -> Option<ArchiveView> {
        Some(self.rooms.archive.as_ref()?.view())
    }

    /// Returns the first readable message, stored or archived.
    pub(crate) fn readable_start(&self, place: &MessageLocation) -> u64 {
        match &self.rooms.archive {
            Some(_) => place.cleared + 1,
            None => self.start(place),
        }
    }

    /// Reads messages from a number on, stored or archived; retracted ones are left out. It may
    /// wait for the archive: do not call it on a thread that serves connections.
    pub(crate) fn live_messages(
        &self,
        place: &MessageLocation,
        seq: u64,
        limit: ReadLimit,
    ) -> Result<Vec<Record>, ConversationError> {
        let (mut records, mut left, mut next) = (Vec::new(), limit, seq);
        while left.records > 0 && left.bytes > 0 {
            next = place.retracted.next_live(next);
            let count = place.live_count(next);
            if count == 0 {
                break;
            }
            let piece = ReadLimit {
                records: left.records.min(count as usize),
                ..left
            };
            let more = self.messages_anywhere(place, next, piece)?;
            let size: usize = more.iter().map(|it| it.payload.len()).sum();
            // Only the first message of all may exceed the limit.
            if more.is_empty() || (!records.is_empty() && size > left.bytes) {
                break;
            }
            left.records -= more.len().min(left.records);
            left.bytes = left.bytes.saturating_sub(size);
            next += more.len() as u64;
            records.extend(more);
        }
        Ok(records)
    }

    /// Reads messages that were not retracted from a number on, stored or archived. It may wait for
    /// the archive: do not call it on a thread that serves connections.
    pub(crate) fn messages_anywhere(
        &self,
        place: &MessageLocation,
        seq: u64,
        limit: ReadLimit,
    ) -> Result<Vec<Record>, ConversationError> {
        let mut records = Vec::new();
        let mut left = limit;
        loop {
            let next = seq + records.len() as u64;
            let more = match self.messages(place, next, left) {
                Err(trimmed) => match self.ask_archive(place, next, left, &trimmed) {
                    Some(reading) => taken(place, next, wait(reading), trimmed)?,
                    None => return Err(trimmed),
                },
                Ok(more) => {
                    let first = more.first().map_or(0, |it| it.payload.len());
                    if records.is_empty() || first <= left.bytes {
                        records.extend(more);
                    }
                    return Ok(records);
                }
            };
            let size: usize = more.iter().map(|it| it.payload.len()).sum();
            left.records = left.records.saturating_sub(more.len());
            left.bytes = left.bytes.saturating_sub(size);
            records.extend(more);
            if left.records == 0 || left.bytes == 0 {
                return Ok(records);
            }
        }
    }

    /// Requests trimmed messages from the archive, if there is one.
    pub(crate) fn ask_archive(
        &self,
        place: &MessageLocation,
        seq: u64,
        limit: ReadLimit,
        trimmed: &ConversationError,
    ) -> Option<ArchiveRead> {
        let archive = self.rooms.archive.as_ref()?;
        let ConversationError::Trimmed { start_seq: start } = *trimmed else {
            return None;
        };
        let last = seq.saturating_add(limit.records.max(1) as u64 - 1);
        // The archive has no retracted messages.
        let last = last.min(place.retracted.live_until(seq));
        let wanted = ArchiveQuery {
            journal: self.store.journal.id(),
            conversation: place.location.stream.0,
            seqs: seq..=last.min(start.saturating_sub(1)),
            bytes: limit.bytes,
        };
        (seq < start).then(|| archive.read(wanted))
    }
}

/// Converts the archive's answer to records of the journal; `trimmed` if the archive does not have
/// the messages.
pub(crate) fn taken(
    place: &MessageLocation,
    seq: u64,
    answer: Result<Vec<ArchivedMessage>, ArchiveUnavailable>,
    trimmed: ConversationError,
) -> Result<Vec<Record>, ConversationError> {
    let archived = answer.map_err(|cause| ConversationError::Archive { seq, cause })?;
    let is_next = |(at, it): (u64, &ArchivedMessage)| it.seq == at;
    let has_all = (seq..).zip(&archived).all(is_next);
    if archived.is_empty() || !has_all {
        // The messages were trimmed before they were archived.
        return Err(trimmed);
    }
    let record = |it: ArchivedMessage| Record {
        offset: place.offset(it.seq),
        time_ms: it.at_ms,
        tag: record::MESSAGE,
        payload: it.record,
    };
    Ok(archived.into_iter().map(record).collect())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until the archive answers.
fn wait(mut reading: ArchiveRead) -> Result<Vec<ArchivedMessage>, ArchiveUnavailable> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match reading.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}
