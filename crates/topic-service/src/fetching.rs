//! Waiting for batches: a long poll that wakes when there is something new to see.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use journal::{Follow, Following, Health, Status};
use platform::Later;

use super::counts::Count;
use super::error::{FetchError, Storage};
use super::fetch::{Ask, FetchLimits, Fetched, Gathered};
use super::partition::Slot;
use crate::service::Topics;
use store::Reach;

/// A fetch in progress. Ends when there are enough bytes, on an error, or after
/// [`Fetching::hurry`]. The answers are in the order of the requested partitions.
#[must_use = "nothing is read before it is polled"]
pub struct Fetching {
    topics: Topics,
    asks: Arc<[Ask]>,
    limits: FetchLimits,
    is_hurried: bool,
    has_waited: bool,
    /// The disk read in progress.
    under_way: Option<Arc<Later<Gathered>>>,
    followed: Vec<Followed>,
}

/// The place where a waker is registered.
enum Followed {
    /// In the journal: woken when the stream's next record is durable.
    Stream(Following),
    /// In a partition: woken by the next append.
    Partition(Arc<Slot>, u64),
}

type Answers = Vec<Result<Fetched, FetchError>>;

impl Topics {
    /// Starts a fetch. The caller owns the timer: see [`Fetching::hurry`].
    pub fn fetch(&self, asks: Vec<Ask>, limits: FetchLimits) -> Fetching {
        Fetching {
            topics: self.clone(),
            asks: asks.into(),
            limits,
            is_hurried: false,
            has_waited: false,
            under_way: None,
            followed: Vec::new(),
        }
    }
}

impl Fetching {
    /// Makes the fetch end with the data at hand, as soon as the read in progress finishes.
    pub fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Returns the answers when they are enough; until then registers the waker, which is woken
    /// when there may be more.
    pub fn poll_fetched(&mut self, waker: &Waker) -> Poll<Answers> {
        loop {
            let gathered = match &self.under_way {
                Some(later) => match later.take(waker) {
                    Some(gathered) => gathered,
                    None => return Poll::Pending,
                },
                None => self.topics.gather(Reach::Memory, &self.asks, self.limits),
            };
            let is_read = self.under_way.take().is_some();
            let Some(gathered) = gathered else {
                // Only a search in memory can be out of reach.
                debug_assert!(!is_read, "the disk is within reach");
                if self.read_elsewhere().is_err() {
                    return Poll::Ready(self.busy());
                }
                continue;
            };
            if self.is_hurried || self.is_enough(&gathered) {
                self.unfollow();
                return Poll::Ready(gathered);
            }
            if self.wait(&gathered, waker) {
                self.count_wait();
                return Poll::Pending;
            }
        }
    }

    fn read_elsewhere(&mut self) -> Result<(), Storage> {
        let (topics, asks, limits) = (self.topics.clone(), self.asks.clone(), self.limits);
        let gather = move || topics.gather(Reach::Disk, &asks, limits);
        self.under_way = Some(self.topics.state.platform.offload_value(gather)?);
        Ok(())
    }

    fn busy(&self) -> Answers {
        let busy = || Err(FetchError::Storage(Storage::Busy));
        self.asks.iter().map(|_| busy()).collect()
    }

    /// Returns whether the answers can be returned now; an error always can.
    fn is_enough(&self, gathered: &Answers) -> bool {
        let size = gathered.iter().flatten().map(Fetched::size).sum::<usize>();
        size >= self.limits.bytes_min || gathered.iter().any(Result::is_err)
    }

    /// Registers the waker for new data; returns whether there was none since `gathered`.
    fn wait(&mut self, gathered: &Answers, waker: &Waker) -> bool {
        self.unfollow();
        let seen = gathered
            .iter()
            .zip(self.asks.clone().iter())
            .all(|(fetched, ask)| {
                fetched
                    .as_ref()
                    .is_ok_and(|it| self.wait_for(ask, it, waker))
            });
        if !seen {
            self.unfollow();
        }
        seen
    }

    fn wait_for(&mut self, ask: &Ask, fetched: &Fetched, waker: &Waker) -> bool {
        if let Some(events) = &ask.topic.events {
            let (seen, following) = self.topics.follow_events(events, ask, fetched, waker);
            self.followed.extend(following.map(Followed::Stream));
            return seen;
        }
        let journal = &self.topics.state.journal;
        let Ok(slot) = ask.topic.slot(ask.partition) else {
            return false;
        };
        let Ok(mut live) = slot.lock(journal) else {
            return false;
        };
        let (high_watermark, last_stable) = (
            live.partition.high_watermark(),
            live.partition.last_stable(),
        );
        if (high_watermark, last_stable) != (fetched.high_watermark, fetched.last_stable) {
            return false;
        }
        if let Some(number) = live.watch(waker) {
            self.followed
                .push(Followed::Partition(slot.clone(), number));
            return true;
        }
        if let Some(ticket) = live.oldest_ticket() {
            return match journal.notify(ticket, waker) {
                Status::Pending => true,
                Status::Durable => false,
                // No data will come from the journal, so the fetch waits for its timeout.
                Status::Failed | Status::Cut | Status::Moved => true,
            };
        }
        let next = live.next_record;
        drop(live);
        match journal.follow(slot.at.shard, slot.at.stream, next, waker) {
            Follow::Waiting(following) => {
                self.followed.push(Followed::Stream(following));
                true
            }
            Follow::Ready => matches!(journal.health(), Health::Failed { .. }),
            // Too many waiters: behaves as if nothing new comes until the timeout.
            Follow::Refused => true,
        }
    }

    fn count_wait(&mut self) {
        if !std::mem::replace(&mut self.has_waited, true) {
            self.topics.counts().add(Count::FetchWaits, 1);
        }
    }

    fn unfollow(&mut self) {
        for followed in self.followed.drain(..) {
            match followed {
                Followed::Stream(following) => self.topics.state.journal.unfollow(&following),
                Followed::Partition(slot, number) => slot.unwatch(number),
            }
        }
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.unfollow();
    }
}

impl Future for Fetching {
    type Output = Answers;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_fetched(cx.waker())
    }
}
