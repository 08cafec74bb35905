//! Pages of messages after a number, for a client connection: from memory at once, from the disk
//! after another thread has read them, trimmed ones from the archive.
//!
//! A page comes from one of these sources; the client reads on for the rest. Nothing here blocks,
//! and a page from the archive delays neither appends nor other reads.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use journal::ReadLimit;
use model::Name;

use super::feed::taken;
use super::read::Place;
use super::{Conversations, PageRead, Refusal};
use crate::later::Later;
use crate::ports::archive::Reading;
use crate::store::Reach;

/// The source of a page.
pub(crate) enum Behind {
    /// The page, read from memory or the disk.
    Read(PageRead),
    /// A request to the archive.
    Archived(ArchivedPage),
}

/// A page requested from the archive.
pub(crate) struct ArchivedPage {
    reading: Reading,
    place: Place,
    /// The answer if the archive does not have the messages.
    trimmed: Refusal,
    /// The page without its messages.
    page: PageRead,
}

/// A page that is still being read.
pub(crate) enum PendingPage {
    /// A read from the disk.
    Disk(Arc<Later<Result<Behind, Refusal>>>),
    /// A read from the archive.
    Archive(ArchivedPage),
}

impl Conversations<'_> {
    /// Reads the messages after a number. It may read from the disk.
    pub(super) fn read_behind(
        &self,
        name: &Name,
        after: u64,
        limit: ReadLimit,
    ) -> Result<Behind, Refusal> {
        match self.read_within(Reach::Disk, name, after, limit)? {
            Some(behind) => Ok(behind),
            None => unreachable!("the disk is as far as anything is"),
        }
    }

    /// Like [`Conversations::read_behind`], without blocking; `None` if the disk is needed.
    pub(super) fn read_behind_at_hand(
        &self,
        name: &Name,
        after: u64,
        limit: ReadLimit,
    ) -> Result<Option<Behind>, Refusal> {
        match self.is_at_hand(name)? {
            true => self.read_within(Reach::Memory, name, after, limit),
            false => Ok(None),
        }
    }

    /// Reads what is within reach; `None` if the messages are not.
    fn read_within(
        &self,
        reach: Reach,
        name: &Name,
        after: u64,
        limit: ReadLimit,
    ) -> Result<Option<Behind>, Refusal> {
        let place = self.place(name)?;
        let (start_seq, head_seq) = self.store.readable_span(place);
        let first_seq = after.saturating_add(1);
        let page = |records| PageRead::new(head_seq, start_seq, first_seq, records);
        if after >= head_seq && first_seq >= start_seq {
            return Ok(Some(Behind::Read(page(Vec::new()))));
        }
        match self.store.messages_within(reach, place, first_seq, limit) {
            Ok(records) => Ok(records.map(|records| Behind::Read(page(records)))),
            Err(trimmed) => {
                let asked = self.store.ask_archive(place, first_seq, limit, &trimmed);
                let reading = asked.ok_or_else(|| trimmed.clone())?;
                Ok(Some(Behind::Archived(ArchivedPage {
                    reading,
                    place,
                    trimmed,
                    page: page(Vec::new()),
                })))
            }
        }
    }
}

impl ArchivedPage {
    /// Returns the page once it has arrived; until then registers the waker.
    pub(super) fn take(&mut self, task: &Waker) -> Option<Result<PageRead, Refusal>> {
        let Poll::Ready(answer) = self.reading.as_mut().poll(&mut Context::from_waker(task)) else {
            return None;
        };
        let seq = self.page.first_seq();
        let records = taken(self.place, seq, answer, self.trimmed.clone());
        Some(records.map(|records| self.page.clone().with(records)))
    }
}

impl PendingPage {
    /// Returns the page once it has arrived; until then registers the waker.
    pub(super) fn take(&mut self, task: &Waker) -> Option<Result<PageRead, Refusal>> {
        if let Self::Disk(later) = self {
            match later.take(task)? {
                Ok(Behind::Read(page)) => return Some(Ok(page)),
                Ok(Behind::Archived(archived)) => *self = Self::Archive(archived),
                Err(refusal) => return Some(Err(refusal)),
            }
        }
        match self {
            Self::Archive(page) => page.take(task),
            Self::Disk(_) => None,
        }
    }
}
