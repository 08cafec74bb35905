//! The messages behind a number, for a client that keeps a connection: what is in memory at once, what
//! is on the disk when somebody else has read it, what was trimmed when the archive has sent it.
//!
//! A page is of one of them: whoever reads on has the rest. Nothing here waits, and what waits for the
//! archive waits alone: neither an append nor another read is behind it.

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

/// Where a page comes from.
pub(crate) enum Behind {
    /// From here: this is it.
    Read(PageRead),
    /// From the archive.
    Archived(ArchivedPage),
}

/// A page that the archive was asked for.
pub(crate) struct ArchivedPage {
    reading: Reading,
    place: Place,
    /// What is told if it has not got them.
    trimmed: Refusal,
    /// But for its messages.
    page: PageRead,
}

/// A page that is not here yet.
pub(crate) enum PendingPage {
    /// It is being read from the disk.
    Disk(Arc<Later<Result<Behind, Refusal>>>),
    /// It is being read from the archive.
    Archive(ArchivedPage),
}

impl Conversations<'_> {
    /// The messages behind a number. It may wait for the disk.
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

    /// The same without waiting; `None` if that is needed.
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

    /// `None` if they are not within reach.
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
    /// The page, once it is here.
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
    /// The page, once it is here.
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
