//! A batch of a request that is not appended yet: it waits for room, or to be recompressed.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use bytes::Bytes;
use node::topics::{Pending, ProduceError, Storage, Topic, Topics};

/// See the module's documentation.
pub(super) struct QueuedBatch {
    /// The place of its answer: the topic and the partition in the response.
    pub(super) place: (usize, usize),
    pub(super) topic: Arc<Topic>,
    pub(super) index: i32,
    pub(super) batch: Bytes,
    preparation: Preparation,
}

/// Whether the batch is as its topic stores it.
enum Preparation {
    Unknown,
    UnderWay(Pending<Result<Bytes, ProduceError>>),
    Done,
}

impl QueuedBatch {
    pub(super) fn new(place: (usize, usize), topic: Arc<Topic>, index: i32, batch: Bytes) -> Self {
        Self {
            place,
            topic,
            index,
            batch,
            preparation: Preparation::Unknown,
        }
    }

    /// Ready once the batch is as its topic stores it; until then the waker is woken.
    pub(super) fn poll_prepared(
        &mut self,
        topics: &Topics,
        waker: &Waker,
    ) -> Poll<Result<(), ProduceError>> {
        if matches!(self.preparation, Preparation::Unknown) {
            self.preparation = match topics.prepare(&self.topic, &self.batch) {
                Some(pending) => Preparation::UnderWay(pending),
                None => Preparation::Done,
            };
        }
        if let Preparation::UnderWay(pending) = &mut self.preparation {
            // A preparation writes nothing, and so is never unconfirmed.
            let prepared = ready!(pending.poll_answer(waker));
            self.preparation = Preparation::Done;
            self.batch = prepared.unwrap_or(Err(Storage::Busy.into()))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether it is being recompressed, and does not wait for room.
    pub(super) fn is_being_prepared(&self) -> bool {
        matches!(self.preparation, Preparation::UnderWay(_))
    }
}
