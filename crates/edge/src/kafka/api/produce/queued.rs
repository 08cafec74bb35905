//! A batch of a request that is not appended yet: it waits for room, or to be unpacked: it is recompressed
//! then, or each of its records needs a key.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use bytes::Bytes;
use node::topics::{NotPrepared, Pending, PreparedBatch, ProduceError, Storage, Topic, Topics};

/// See the module's documentation.
pub(super) struct QueuedBatch {
    /// The place of its answer: the topic and the partition in the response.
    pub(super) place: (usize, usize),
    pub(super) topic: Arc<Topic>,
    pub(super) index: i32,
    pub(super) batch: PreparedBatch,
    preparation: Preparation,
}

/// Whether the batch is as its topic stores it.
enum Preparation {
    Unknown,
    UnderWay(Pending<Result<PreparedBatch, NotPrepared>>),
    Done,
}

impl QueuedBatch {
    pub(super) fn new(place: (usize, usize), topic: Arc<Topic>, index: i32, batch: Bytes) -> Self {
        Self {
            place,
            topic,
            index,
            batch: PreparedBatch::unchanged(batch),
            preparation: Preparation::Unknown,
        }
    }

    /// Ready once the batch is as its topic stores it; until then the waker is woken.
    pub(super) fn poll_prepared(
        &mut self,
        topics: &Topics,
        unpacked_left: &mut usize,
        waker: &Waker,
    ) -> Poll<Result<(), ProduceError>> {
        if matches!(self.preparation, Preparation::Unknown) {
            self.preparation = match topics.prepare(&self.topic, self.batch.bytes(), *unpacked_left)
            {
                Some(pending) => Preparation::UnderWay(pending),
                None => Preparation::Done,
            };
        }
        if let Preparation::UnderWay(pending) = &mut self.preparation {
            // A preparation writes nothing, and so is never unconfirmed.
            let prepared = ready!(pending.poll_answer(waker));
            self.preparation = Preparation::Done;
            let (unpacked_size, prepared) = match prepared {
                Ok(Ok(batch)) => (batch.unpacked_size(), Ok(batch)),
                Ok(Err(failed)) => (failed.unpacked_size, Err(failed.error)),
                Err(_) => (0, Err(Storage::Busy.into())),
            };
            *unpacked_left = unpacked_left.saturating_sub(unpacked_size);
            self.batch = prepared?;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether it is being recompressed, and does not wait for room.
    pub(super) fn is_being_prepared(&self) -> bool {
        matches!(self.preparation, Preparation::UnderWay(_))
    }
}
