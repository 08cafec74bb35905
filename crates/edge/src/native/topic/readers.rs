//! The readers of partitions on one connection: for a READ once, for a FOLLOW until it is
//! cancelled.
//!
//! All share one bell, which a reader that can continue rings.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use model::ErrorCode;
use model::limits::FRAME_SIZE_MAX;
use node::records::{NotRead, Reader, Record, Wanted};
use node::{Bell, Ticket};
use wire::{Flags, Read, TopicHeaders, TopicRecord};

use super::{BoundPartition, answer_refusal};
use crate::native::outlet::{NativeOutlet, correlation};
use crate::topics::Refused;

/// The number of items that are sent before the client returns credit.
const WINDOW: u32 = 64;

/// The most readers of one connection.
const READERS_MAX: usize = 1_024;

/// A client that leaves this many bytes unread gets no more items until it has read.
const UNREAD_SIZE_MAX: usize = 1 << 20;

/// The bytes around the records of an answer, and around each record.
const AROUND: usize = 16;
const RECORD_AROUND: usize = 20;

/// The end of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// After the present records.
    Read,
    /// When it is cancelled.
    Follow,
}

/// The readers of one connection.
#[derive(Default)]
pub(super) struct Readers {
    list: Vec<Reading>,
    bell: Option<Arc<Bell>>,
}

/// The result of polling the readers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looked {
    pub(super) has_answered: bool,
    /// The client does not read.
    pub(super) is_unread: bool,
}

struct Reading {
    tag: Ticket,
    kind: Kind,
    place: BoundPartition,
    reader: Reader,
    limit: Read,
    credit: u32,
    item: Item,
}

/// An item in preparation.
#[derive(Default)]
struct Item {
    records: Vec<u8>,
    count: u32,
    /// True if it is complete.
    is_full: bool,
}

impl Readers {
    pub(super) fn begin(
        &mut self,
        tag: Ticket,
        kind: Kind,
        place: BoundPartition,
        mut reader: Reader,
        limit: Read,
    ) -> Result<(), Refused> {
        if self.list.len() >= READERS_MAX {
            let message = format!("too many readers on this connection (limit {READERS_MAX})");
            return Err(Refused::new(ErrorCode::Busy, message));
        }
        if kind == Kind::Read {
            reader.hurry();
        }
        self.list.push(Reading {
            tag,
            kind,
            place,
            reader,
            limit,
            credit: WINDOW,
            item: Item::default(),
        });
        self.ring();
        Ok(())
    }

    /// Removes the reader of this tag; returns false if there is none.
    pub(super) fn end(&mut self, tag: Ticket) -> bool {
        let found = self.list.iter().position(|reading| reading.tag == tag);
        found.map(|at| self.list.swap_remove(at)).is_some()
    }

    pub(super) fn credit(&mut self, tag: Ticket, items: u32) -> bool {
        let found = self.list.iter_mut().find(|reading| reading.tag == tag);
        let Some(reading) = found else {
            return false;
        };
        reading.credit = reading.credit.saturating_add(items).min(WINDOW);
        self.ring();
        true
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.note();
        }
    }

    /// Sends the available records of every reader, if anything has changed since the last poll.
    pub(super) fn poll(&mut self, cx: &Context<'_>, outlet: &NativeOutlet) -> Looked {
        let mut looked = Looked::default();
        if self.list.is_empty() {
            self.bell = None;
            return looked;
        }
        let bell = self.bell.get_or_insert_with(Bell::rung);
        bell.listen(cx.waker());
        if !bell.has_rung() {
            return looked;
        }
        let waker = Waker::from(bell.clone());
        self.list
            .retain_mut(|reading| reading.look(&waker, outlet, &mut looked) == Look::Rests);
        if looked.is_unread {
            self.ring();
        }
        looked
    }
}

/// The state of a reader after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Rests,
    Over,
}

impl Reading {
    /// Sends the available records, as far as there is credit.
    fn look(&mut self, waker: &Waker, outlet: &NativeOutlet, looked: &mut Looked) -> Look {
        while self.credit > 0 {
            if outlet.outbox.queued_size() > UNREAD_SIZE_MAX {
                looked.is_unread = true;
                return Look::Rests;
            }
            let is_whole = match self.fill(waker) {
                Ok(is_whole) => is_whole,
                Err(refused) => {
                    // Records that were read before the error are sent first.
                    if self.item.count > 0 {
                        self.send(outlet, looked);
                        if self.kind == Kind::Read {
                            return Look::Over;
                        }
                    }
                    answer_refusal(outlet, self.tag, &refused);
                    looked.has_answered = true;
                    return Look::Over;
                }
            };
            if !is_whole {
                return Look::Rests;
            }
            self.send(outlet, looked);
            if self.kind == Kind::Read {
                return Look::Over;
            }
        }
        Look::Rests
    }

    /// Reads available records into the item; returns whether it is to be sent.
    fn fill(&mut self, waker: &Waker) -> Result<bool, Refused> {
        while !self.item.is_full {
            match self.reader.poll_ready(waker) {
                Poll::Pending => return Ok(self.item.count > 0),
                Poll::Ready(ready) => match ready? {
                    // A READ has got all present records.
                    false => return Ok(self.kind == Kind::Read || self.item.count > 0),
                    true => self.take()?,
                },
            }
        }
        Ok(true)
    }

    fn take(&mut self) -> Result<(), Refused> {
        let Self {
            reader,
            item,
            limit,
            ..
        } = self;
        let mut large = None;
        let walked: Result<(), NotRead> = reader.each(|record| match item.take(record, limit) {
            Ok(wanted) => wanted,
            Err(size) => {
                large = Some((record.offset.unsigned_abs(), size));
                Wanted::Enough
            }
        });
        walked?;
        match large {
            None => Ok(()),
            Some((offset, size)) => Err(Refused::too_large_for_a_frame(offset, size)),
        }
    }

    fn send(&mut self, outlet: &NativeOutlet, looked: &mut Looked) {
        // If the topic was deleted meanwhile, the next poll reports it.
        let (start, end) = self.place.standing().unwrap_or_default();
        // More records may have been appended since: an empty item ends where the reader is.
        let end = match self.item.count {
            0 => self.reader.next(),
            _ => end.max(self.reader.next()),
        };
        let flags = match self.kind {
            Kind::Read => Flags::NONE,
            Kind::Follow => Flags::MORE,
        };
        let (item, at) = (std::mem::take(&mut self.item), correlation(self.tag));
        outlet.push_answer(|out| {
            wire::encode_extracted(start, end, &item.records, flags, at, out);
        });
        self.credit -= 1;
        looked.has_answered = true;
    }
}

impl Item {
    /// Adds a record if it fits, or if it is the first; the error is its size, if no frame can hold
    /// it.
    fn take(&mut self, record: &Record<'_>, limit: &Read) -> Result<Wanted, usize> {
        let before = self.records.len();
        let mut headers = Vec::new();
        let encoded = TopicRecord {
            partition: None,
            key: record.key,
            headers: TopicHeaders::encode(record.headers(), &mut headers),
            value: record.value,
        };
        let offset = record.offset.unsigned_abs();
        wire::put_extracted(offset, record.timestamp, &encoded, &mut self.records);
        let of_records = self.records.len() - (self.count as usize + 1) * RECORD_AROUND;
        let frame_size = AROUND + self.records.len();
        let is_large = frame_size as u64 > FRAME_SIZE_MAX.as_u64();
        if self.count > 0 && (of_records > limit.bytes_max as usize || is_large) {
            self.records.truncate(before);
            self.is_full = true;
            return Ok(Wanted::NotThis);
        }
        if is_large {
            self.records.truncate(before);
            return Err(frame_size);
        }
        self.count += 1;
        self.is_full =
            self.count >= limit.records_max.max(1) || of_records >= limit.bytes_max as usize;
        Ok(match self.is_full {
            true => Wanted::Enough,
            false => Wanted::More,
        })
    }
}
