//! Handing out batches, and waiting for more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::topics::{Isolation, ProducerId};
use bytes::Bytes;

use super::Topics;
use super::error::{FetchError, UnknownPartition};
use super::state::Topic;

/// What is asked of one partition.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Of which topic.
    pub topic: Arc<Topic>,
    /// Which partition, from 0.
    pub partition: u32,
    /// The offset of the first record.
    pub offset: u64,
    /// Bytes, at most; one batch comes even if it is larger.
    pub bytes_max: usize,
    /// Of which leader the reader knows.
    pub leader_epoch: Option<i32>,
}

/// What a reader wants of all partitions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Which records it wants to see.
    pub isolation: Isolation,
    /// It waits until there are so many bytes; 0 for not at all.
    pub bytes_min: usize,
    /// Bytes, at most; one batch comes even if it is larger.
    pub bytes_max: usize,
}

/// What there is of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Whole batches in their order, each as it is stored: the first holds the offset that was asked
    /// for. They lie in memory that is shared with others: whoever keeps them for long copies them.
    pub batches: Vec<Bytes>,
    /// Up to where everything is durable.
    pub high_watermark: u64,
    /// Up to where every transaction is over.
    pub last_stable: u64,
    /// The first offset there is.
    pub log_start: u64,
    /// Transactions that were aborted and of which there is something in the batches: whose, and from
    /// which offset on. For whoever wants to see what is committed.
    pub aborted: Vec<(ProducerId, u64)>,
}

/// Ends when there is enough, when there is an error, or when whoever asked does not want to wait any
/// longer. An answer for each partition, in the order in which they were asked for.
#[must_use = "nothing is read before it is polled"]
pub struct Fetching {
    topics: Topics,
    asks: Arc<[Ask]>,
    limits: FetchLimits,
    is_hurried: bool,
}

impl Topics {
    /// Reads from partitions. The timer is the caller's: see [`Fetching::hurry`].
    pub fn fetch(&self, asks: Vec<Ask>, limits: FetchLimits) -> Fetching {
        Fetching {
            topics: self.clone(),
            asks: asks.into(),
            limits,
            is_hurried: false,
        }
    }
}

impl Fetching {
    /// From now on it ends with whatever there is, as soon as what is being read has been.
    pub fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// What there is, when it is enough; until then nothing, and the waker is woken once there may be
    /// more.
    pub fn poll_fetched(&mut self, waker: &Waker) -> Poll<Vec<Result<Fetched, FetchError>>> {
        let _ = (waker, &self.topics, self.limits, self.is_hurried);
        let unknown = self.asks.iter().map(|_| Err(UnknownPartition.into()));
        Poll::Ready(unknown.collect())
    }
}

impl Future for Fetching {
    type Output = Vec<Result<Fetched, FetchError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_fetched(cx.waker())
    }
}
