//! A batch of a request that is not appended yet. It waits for room, or for its decompression,
//! which is needed if the topic has another codec or if each of its records needs a key.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use platform::Pending;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use topic_service::{NotPrepared, PreparedBatch, ProduceError, Storage, Topic, Topics};

/// A pending permit for a decompression.
type PendingPermit =
    Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A batch that waits to be appended.
pub(super) struct PendingBatch {
    /// The position of its answer: the topic and the partition in the response.
    pub(super) place: (usize, usize),
    pub(super) index: i32,
    pub(super) batch: PreparedBatch,
    preparation: Preparation,
}

/// The progress of bringing the batch into the form in which its topic stores it.
enum Preparation {
    Unknown,
    /// Too many other batches are being decompressed.
    Waiting(PendingPermit),
    UnderWay(Pending<PreparedBatch, NotPrepared>),
    Done,
}

impl PendingBatch {
    pub(super) fn new(place: (usize, usize), index: i32, batch: Bytes) -> Self {
        Self {
            place,
            index,
            batch: PreparedBatch::unchanged(batch),
            preparation: Preparation::Unknown,
        }
    }

    /// Returns ready once the batch has the form in which its topic stores it; until then the waker
    /// is woken.
    pub(super) fn poll_prepared(
        &mut self,
        topic: &Arc<Topic>,
        topics: &Topics,
        unpackings: &Arc<Semaphore>,
        unpacked_left: &mut usize,
        waker: &Waker,
    ) -> Poll<Result<(), ProduceError>> {
        if matches!(self.preparation, Preparation::Unknown) {
            self.preparation = match topics.needs_preparation(topic, self.batch.bytes()) {
                true => Preparation::Waiting(Box::pin(unpackings.clone().acquire_owned())),
                false => Preparation::Done,
            };
        }
        if let Preparation::Waiting(permit) = &mut self.preparation {
            let permit = ready!(permit.as_mut().poll(&mut Context::from_waker(waker)));
            let permit = permit.map_err(|_| Storage::Busy)?;
            let pending = topics.prepare(topic, self.batch.bytes(), *unpacked_left, permit);
            self.preparation = Preparation::UnderWay(pending);
        }
        if let Preparation::UnderWay(pending) = &mut self.preparation {
            let prepared = ready!(pending.poll_answer(waker));
            self.preparation = Preparation::Done;
            let (unpacked_size, prepared) = match prepared {
                Ok(batch) => (batch.unpacked_size(), Ok(batch)),
                Err(failed) => (failed.unpacked_size, Err(failed.error)),
            };
            *unpacked_left = unpacked_left.saturating_sub(unpacked_size);
            self.batch = prepared?;
        }
        Poll::Ready(Ok(()))
    }

    /// Returns whether the batch is being decompressed or waits for that, instead of waiting for
    /// room.
    pub(super) fn is_being_prepared(&self) -> bool {
        matches!(
            self.preparation,
            Preparation::Waiting(_) | Preparation::UnderWay(_)
        )
    }
}
