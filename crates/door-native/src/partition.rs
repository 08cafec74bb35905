//! Partitions of topics, and their readers on one connection: for a READ once, for a FOLLOW until it is cancelled.

use std::sync::Arc;
use std::task::{Poll, Waker};

use door::topics::{ReadableRange, Refused};
use model::limits::FRAME_SIZE_MAX;
use recordbatch::Record;
use routing::Ticket;
use topic_service::records::{NotRead, Reader, Wanted};
use topic_service::{Topic, Topics};
use wire::{Flags, Read, TopicHeaders, TopicRecord};

use super::answers::Answers;
use super::errors::ErrorAnswer;
use super::outlet::correlation;

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

/// A reader of a partition, which collects records into items.
pub(super) struct PartitionReader {
    kind: Kind,
    place: BoundPartition,
    reader: Reader,
    limit: Read,
    item: Item,
}

/// The result of asking a source for an item.
pub(super) enum Next {
    /// An item was sent.
    Sent,
    /// The last item was sent.
    Last,
    /// An item was sent, and the follower ends with an error.
    Failed(ErrorAnswer),
}

/// An existing partition.
pub(super) struct BoundPartition {
    topics: Topics,
    topic: Arc<Topic>,
    partition: u32,
}

impl BoundPartition {
    pub(super) fn new(topics: Topics, topic: Arc<Topic>, partition: u32) -> Self {
        Self {
            topics,
            topic,
            partition,
        }
    }

    /// Returns the readable range.
    pub(super) fn readable(&self) -> Result<ReadableRange, Refused> {
        ReadableRange::of(&self.topics, &self.topic, self.partition)
    }

    pub(super) fn reader(&self, from: u64) -> Reader {
        Reader::open(&self.topics, self.topic.clone(), self.partition, from)
    }
}

/// An item in preparation.
#[derive(Default)]
struct Item {
    records: Vec<u8>,
    count: u32,
    /// True if it is complete.
    is_full: bool,
}

impl PartitionReader {
    pub(super) fn new(kind: Kind, place: BoundPartition, mut reader: Reader, limit: Read) -> Self {
        if kind == Kind::Read {
            reader.hurry();
        }
        Self {
            kind,
            place,
            reader,
            limit,
            item: Item::default(),
        }
    }

    /// Sends the next item once it is complete.
    pub(super) fn poll_next(
        &mut self,
        answers: &mut Answers,
        tag: Ticket,
        waker: &Waker,
    ) -> Poll<Result<Next, ErrorAnswer>> {
        let failed = match self.fill(waker) {
            Ok(false) => return Poll::Pending,
            Ok(true) => None,
            // Records that were read before the error are sent first.
            Err(refused) if self.item.count > 0 => Some(refused),
            Err(refused) => return Poll::Ready(Err(refused.into())),
        };
        self.send(answers, tag);
        Poll::Ready(Ok(match (self.kind, failed) {
            (Kind::Read, _) => Next::Last,
            (Kind::Follow, None) => Next::Sent,
            (Kind::Follow, Some(refused)) => Next::Failed(refused.into()),
        }))
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

    fn send(&mut self, answers: &mut Answers, tag: Ticket) {
        // If the topic was deleted meanwhile, the next poll reports it.
        let ReadableRange { start, end } = self.place.readable().unwrap_or_default();
        // More records may have been appended since: an empty item ends where the reader is.
        let end = match self.item.count {
            0 => self.reader.next(),
            _ => end.max(self.reader.next()),
        };
        let flags = match self.kind {
            Kind::Read => Flags::NONE,
            Kind::Follow => Flags::MORE,
        };
        let (item, at) = (std::mem::take(&mut self.item), correlation(tag));
        answers.send(|out| {
            wire::encode_extracted(start, end, &item.records, flags, at, out);
        });
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
