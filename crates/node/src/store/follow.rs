//! Followers of raw streams, which get records as they become durable.

use std::sync::Arc;
use std::task::{Poll, Waker};

use journal::{Follow, Following, Health, ShardId, StreamId};
use model::Name;
use platform::Pending;

use super::error::{StorageError, StreamError};
use super::raw::{Range, Stream, StreamExtract};
use super::restore::Reach;
use super::{Store, directory};
use crate::node::{Inner, Node};

/// A follower of a stream, which need not exist. It is polled for one extract after the other.
pub struct StreamFollower {
    inner: Arc<Inner>,
    name: Name,
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
    pub fn new(node: &Node, stream: &Stream, range: Range) -> Result<Self, StreamError> {
        node.inner.store.as_ref().ok_or(StreamError::NoStorage)?;
        Ok(Self {
            inner: node.inner.clone(),
            name: stream.name().clone(),
            range,
            waiting: None,
            reading: None,
        })
    }

    /// Returns the next durable records; until there are any, the waker is woken when there may be.
    pub fn poll_next(&mut self, waker: &Waker) -> Poll<Result<StreamExtract, StreamError>> {
        let inner = self.inner.clone();
        let Some(store) = &inner.store else {
            return Poll::Ready(Err(StreamError::NoStorage));
        };
        self.end_waiting(store);
        loop {
            // Read before the name is looked up, so that a stream created afterwards is not missed.
            let made = store.stream_count() as u64;
            let location = store.readable(&self.name);
            let mut reading = match self.reading.take() {
                Some(reading) => reading,
                None => match store.read(Reach::Memory, location, self.range)? {
                    Some(read) => Pending::now(read),
                    None => inner.read_stream(self.name.clone(), self.range),
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
            let (shard, stream, from) = match location {
                Some(location) => (location.shard, location.stream, self.range.from),
                None => (directory::SHARD, directory::STREAM, made),
            };
            self.waiting = wait(store, shard, stream, from, waker)?;
            if self.waiting.is_some() {
                return Poll::Pending;
            }
        }
    }

    fn end_waiting(&mut self, store: &Store) {
        if let Some(waiting) = self.waiting.take() {
            // The registration may have ended by itself.
            store.journal.unfollow(&waiting);
        }
    }
}

impl Drop for StreamFollower {
    fn drop(&mut self) {
        let inner = self.inner.clone();
        if let Some(store) = &inner.store {
            self.end_waiting(store);
        }
    }
}

/// Registers the waker for growth of the stream; `None` if it has grown already.
fn wait(
    store: &Store,
    shard: ShardId,
    stream: StreamId,
    from: u64,
    waker: &Waker,
) -> Result<Option<Following>, StreamError> {
    if let Health::Failed { reason } = store.journal.health() {
        let reason = Some(reason);
        return Err(StorageError::Failed { reason }.into());
    }
    match store.journal.follow(shard, stream, from, waker) {
        Follow::Waiting(following) => Ok(Some(following)),
        Follow::Ready => Ok(None),
        Follow::Refused => Err(StreamError::Followers),
    }
}
