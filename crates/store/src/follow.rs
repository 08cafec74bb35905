//! Followers of raw streams, which get records as they become durable.

use std::task::{Poll, Waker};

use journal::{Following, Reach};
use platform::Pending;

use crate::error::StreamError;
use crate::stream::{Range, Stream, StreamExtract};
use crate::streams::Streams;

/// A follower of a stream, which need not exist. It is polled for one extract after the other.
pub struct StreamFollower {
    streams: Streams,
    stream: Stream,
    /// The next offset, and the limits of one extract.
    range: Range,
    /// The registration with the journal.
    waiting: Option<Following>,
    /// The read from the disk in progress.
    reading: Option<Pending<StreamExtract, StreamError>>,
}

impl StreamFollower {
    /// Creates a follower from the start of a range; the limits of the range are those of each
    /// extract.
    pub fn new(streams: &Streams, stream: &Stream, range: Range) -> Self {
        Self {
            streams: streams.clone(),
            stream: stream.clone(),
            range,
            waiting: None,
            reading: None,
        }
    }

    /// Returns the next durable records; until there are any, the waker is woken when there may be.
    pub fn poll_next(&mut self, waker: &Waker) -> Poll<Result<StreamExtract, StreamError>> {
        self.end_waiting();
        let store = self.streams.store.clone();
        loop {
            // Read before the name is looked up, so that a stream created afterwards is not missed.
            let shard = store.shard_of(self.stream.name().base());
            let created = store.names_end(shard);
            let location = store.raw(self.stream.name());
            let mut reading = match self.reading.take() {
                Some(reading) => reading,
                None => match store.read(Reach::Memory, location, self.range)? {
                    Some(read) => Pending::now(read),
                    None => self.streams.read(&self.stream, self.range),
                },
            };
            let Poll::Ready(read) = reading.poll_answer(waker) else {
                self.reading = Some(reading);
                return Poll::Pending;
            };
            let read = read?;
            if let Some(last) = read.last_offset() {
                self.range.from = last + 1;
                return Poll::Ready(Ok(read));
            }
            self.waiting = match location {
                Some(location) => store.follow(location, self.range.from, waker)?,
                None => store.follow_names(shard, created, waker)?,
            };
            if self.waiting.is_some() {
                return Poll::Pending;
            }
        }
    }

    fn end_waiting(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.streams.store.unfollow(&waiting);
        }
    }
}

impl Drop for StreamFollower {
    fn drop(&mut self) {
        self.end_waiting();
    }
}
