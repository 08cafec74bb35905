//! Handlers that wait, polled by the task of their connection.
//!
//! Each seat in the table has a waker, which outlives its handler and serves the next one in the
//! same seat. A late wake-up polls another handler once too often and does no harm.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tokio::time::Instant;
use wire::Correlation;

use super::guard;
use super::handlers::Job;
use super::item_sender::Stream;
use super::reply::{Origin, Outlet, Reply};
use crate::state::queue::earlier;

/// A handler in progress.
pub(crate) struct RunningHandler {
    pub(crate) job: Pin<Box<dyn Job>>,
    pub(crate) origin: Origin,
    /// Size of the request's payload in bytes.
    pub(crate) size: usize,
    pub(crate) deadline: Option<Instant>,
    pub(crate) stream: Option<Arc<Stream>>,
}

/// A handler that completed or was dropped.
pub(crate) struct EndedHandler {
    pub(crate) origin: Origin,
    pub(crate) size: usize,
    pub(crate) stream: Option<Arc<Stream>>,
}

/// Table of the handlers in progress on one connection.
pub(crate) struct Jobs {
    seats: Vec<Seat>,
    free: Vec<u32>,
    by_correlation: HashMap<Correlation, u32>,
    ready: Arc<WakeQueue>,
    /// Seats to poll next.
    due: VecDeque<u32>,
    count: usize,
    size: usize,
    deadline_min: Option<Instant>,
}

/// A slot of the table.
struct Seat {
    running: Option<RunningHandler>,
    alarm: Arc<SeatWaker>,
    waker: Waker,
}

/// Queue of seats that were woken.
#[derive(Default)]
struct WakeQueue {
    woken: Mutex<Vec<u32>>,
    is_dirty: AtomicBool,
    task: Mutex<Option<Waker>>,
}

/// Waker of one seat.
struct SeatWaker {
    index: u32,
    is_woken: AtomicBool,
    ready: Arc<WakeQueue>,
}

impl Wake for SeatWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        self.ready.woken.lock().push(self.index);
        if !self.ready.is_dirty.swap(true, Ordering::AcqRel)
            && let Some(task) = &*self.ready.task.lock()
        {
            task.wake_by_ref();
        }
    }
}

impl Jobs {
    pub(crate) fn new() -> Self {
        Self {
            seats: Vec::new(),
            free: Vec::new(),
            by_correlation: HashMap::new(),
            ready: Arc::default(),
            due: VecDeque::new(),
            count: 0,
            size: 0,
            deadline_min: None,
        }
    }

    /// Sets the waker of the connection's task.
    pub(crate) fn register(&self, task: &Waker) {
        let mut known = self.ready.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }

    /// Returns the number of handlers in progress.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the bytes of the requests in progress.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns a lower bound of the deadlines.
    pub(crate) fn deadline_min(&self) -> Option<Instant> {
        self.deadline_min
    }

    /// Returns the waker for the first poll of the next handler. [`Jobs::insert`] puts the handler
    /// into the same seat.
    pub(crate) fn next_waker(&mut self) -> &Waker {
        let index = match self.free.last() {
            Some(index) => *index as usize,
            None => {
                let index = self.seats.len();
                let alarm = Arc::new(SeatWaker {
                    index: index as u32,
                    is_woken: AtomicBool::new(false),
                    ready: self.ready.clone(),
                });
                self.seats.push(Seat {
                    running: None,
                    waker: Waker::from(alarm.clone()),
                    alarm,
                });
                self.free.push(index as u32);
                index
            }
        };
        &self.seats[index].waker
    }

    /// Stores a handler that was polled with [`Jobs::next_waker`] and waits.
    pub(crate) fn insert(&mut self, running: RunningHandler) {
        let Some(index) = self.free.pop() else {
            unreachable!("the seat of `next_waker` is free");
        };
        self.count += 1;
        self.size += running.size;
        self.deadline_min = earlier(self.deadline_min, running.deadline);
        if let Origin::Call { correlation, .. } = running.origin {
            self.by_correlation.insert(correlation, index);
        }
        self.seats[index as usize].running = Some(running);
    }

    /// True if a handler was woken.
    pub(crate) fn is_ready(&self) -> bool {
        !self.due.is_empty() || self.ready.is_dirty.load(Ordering::Acquire)
    }

    /// Collects the seats woken so far. [`Jobs::next_ended`] polls only those, so that a handler
    /// that wakes itself cannot starve the connection.
    pub(crate) fn gather(&mut self) {
        if self.ready.is_dirty.swap(false, Ordering::AcqRel) {
            self.due.extend(self.ready.woken.lock().drain(..));
        }
    }

    /// Polls the collected handlers until one completes; its reply is appended to `out`.
    pub(crate) fn next_ended(
        &mut self,
        outlet: &Outlet,
        out: &mut Vec<u8>,
    ) -> Option<EndedHandler> {
        while let Some(index) = self.due.pop_front() {
            let seat = &mut self.seats[index as usize];
            seat.alarm.is_woken.store(false, Ordering::Release);
            let Some(running) = &mut seat.running else {
                continue;
            };
            let mut cx = Context::from_waker(&seat.waker);
            let stream = running.stream.as_deref();
            let mut reply = Reply::new(&running.origin, stream, outlet, out);
            let job = running.job.as_mut();
            match guard::catch(|| job.poll(&mut cx, &mut reply)) {
                Ok(Poll::Pending) => continue,
                Ok(Poll::Ready(())) => {}
                Err(panicked) => reply.refuse(&panicked),
            }
            return self.remove(index);
        }
        None
    }

    /// Returns the stream of a call in progress.
    pub(crate) fn stream(&self, correlation: Correlation) -> Option<&Arc<Stream>> {
        let index = *self.by_correlation.get(&correlation)?;
        let running = self.seats[index as usize].running.as_ref()?;
        running.stream.as_ref()
    }

    /// Drops the handler of a call if it is in progress.
    pub(crate) fn cancel(&mut self, correlation: Correlation) -> Option<EndedHandler> {
        let index = *self.by_correlation.get(&correlation)?;
        self.remove(index)
    }

    /// Drops the handlers whose deadline has passed.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<EndedHandler> {
        if self.deadline_min.is_none_or(|earliest| now < earliest) {
            return Vec::new();
        }
        self.deadline_min = None;
        let mut expired = Vec::new();
        for (index, seat) in self.seats.iter().enumerate() {
            let Some(deadline) = seat.running.as_ref().and_then(|running| running.deadline) else {
                continue;
            };
            match deadline <= now {
                true => expired.push(index as u32),
                false => self.deadline_min = earlier(self.deadline_min, Some(deadline)),
            }
        }
        let ended = expired.into_iter();
        ended.filter_map(|index| self.remove(index)).collect()
    }

    fn remove(&mut self, index: u32) -> Option<EndedHandler> {
        let running = self.seats[index as usize].running.take()?;
        let RunningHandler {
            job,
            origin,
            size,
            stream,
            ..
        } = running;
        self.free.push(index);
        self.count -= 1;
        self.size -= size;
        if let Origin::Call { correlation, .. } = origin
            && self.by_correlation.get(&correlation) == Some(&index)
        {
            self.by_correlation.remove(&correlation);
        }
        if let Some(stream) = &stream {
            stream.close();
        }
        guard::drop_quietly(job);
        Some(EndedHandler {
            origin,
            size,
            stream,
        })
    }
}
