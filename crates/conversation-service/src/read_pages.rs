//! Pages of messages after a number, for a client connection: from memory at once, from the disk
//! after another thread has read them, trimmed ones from the archive.
//!
//! A page comes from one of these sources; the client reads on for the rest. Nothing here blocks,
//! and a page from the archive delays neither appends nor other reads.

use std::task::Context;

use journal::ReadLimit;
use model::Name;
use store::Reach;

use super::feed::taken;
use super::read::MessageLocation;
use super::{ConversationError, Conversations, Page, PageRead, Pending, Side};

/// The oldest messages after a number, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRange {
    /// The number of the message before the range.
    pub after: u64,
    /// Maximum number of messages.
    pub messages_max: u32,
    /// Maximum bytes; the first message is returned even if it is larger.
    pub bytes_max: u32,
}

impl MessageRange {
    fn limit(self) -> ReadLimit {
        let page = Page {
            side: Side::After(self.after),
            limit: self.messages_max as usize,
            bytes: self.bytes_max as usize,
        };
        page.limit()
    }
}

impl Conversations {
    /// Reads the messages of a range. It may read from the disk: do not call it on a thread that
    /// serves connections. Only the archive may be waited for afterwards.
    pub fn read_after(
        &self,
        name: &Name,
        range: MessageRange,
    ) -> Result<Pending<PageRead>, ConversationError> {
        match self.read_within(Reach::Disk, name, range)? {
            Some(page) => Ok(page),
            None => unreachable!("a read from the disk always completes"),
        }
    }

    /// Like [`Conversations::read_after`], without blocking; `None` if the disk is needed.
    pub fn read_after_at_once(
        &self,
        name: &Name,
        range: MessageRange,
    ) -> Result<Option<Pending<PageRead>>, ConversationError> {
        match self.is_at_hand(name)? {
            true => self.read_within(Reach::Memory, name, range),
            false => Ok(None),
        }
    }

    /// Reads the messages that are within reach; `None` if they are not.
    fn read_within(
        &self,
        reach: Reach,
        name: &Name,
        range: MessageRange,
    ) -> Result<Option<Pending<PageRead>>, ConversationError> {
        let place = self.place(name)?;
        let start_seq = self.readable_start(&place);
        let first_seq = range.after.max(place.cleared).saturating_add(1);
        let first_seq = place.retracted.next_live(first_seq);
        let page = move |place: &MessageLocation, records| PageRead::new(place, start_seq, records);
        let count = place.live_count(first_seq);
        if count == 0 && first_seq >= start_seq {
            return Ok(Some(Pending::now(page(&place, Vec::new()))));
        }
        // A page ends before the next retracted message.
        let limit = range.limit();
        let limit = ReadLimit {
            records: limit.records.min(count.max(1) as usize),
            ..limit
        };
        match self.messages_within(reach, &place, first_seq, limit) {
            Ok(records) => Ok(records.map(|records| Pending::now(page(&place, records)))),
            Err(trimmed) => {
                let asked = self.ask_archive(&place, first_seq, limit, &trimmed);
                let mut reading = asked.ok_or_else(|| trimmed.clone())?;
                Ok(Some(Pending::steps(move |waker| {
                    let answer = reading.as_mut().poll(&mut Context::from_waker(waker));
                    let records = answer.map(|it| taken(&place, first_seq, it, trimmed.clone()));
                    records.map(|records| Ok(page(&place, records?)))
                })))
            }
        }
    }
}
