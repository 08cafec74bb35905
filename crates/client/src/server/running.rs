//! Handlers that wait for something, polled by the task of their connection.
//!
//! Each has a waker of its own, which outlives it and serves the next one at the same index: a
//! wake-up that comes too late polls another handler once too often and does no harm.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tokio::time::Instant;
use wire::Correlation;

use super::guard;
use super::handlers::{Done, Job};
use super::item_sender::Stream;
use super::reply::{Origin, Outlet, Reply};
use crate::queue::earlier;

/// A handler under way.
pub(crate) struct Running {
    pub(crate) job: Pin<Box<dyn Job>>,
    pub(crate) origin: Origin,
    /// Bytes of the request's payload.
    pub(crate) size: usize,
    pub(crate) deadline: Option<Instant>,
    pub(crate) stream: Option<Arc<Stream>>,
}

/// A handler that ended or was dropped.
pub(crate) struct Ended {
    pub(crate) origin: Origin,
    pub(crate) size: usize,
    pub(crate) stream: Option<Arc<Stream>>,
}

pub(crate) struct Jobs {
    seats: Vec<Seat>,
    free: Vec<u32>,
    by_correlation: HashMap<Correlation, u32>,
    ready: Arc<Ready>,
    /// Who is polled next.
    due: VecDeque<u32>,
    count: usize,
    size: usize,
    deadline_min: Option<Instant>,
}

struct Seat {
    running: Option<Running>,
    alarm: Arc<Alarm>,
    waker: Waker,
}

/// Where wake-ups arrive.
#[derive(Default)]
struct Ready {
    woken: Mutex<Vec<u32>>,
    is_dirty: AtomicBool,
    task: Mutex<Option<Waker>>,
}

struct Alarm {
    index: u32,
    is_woken: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Alarm {
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

    /// For the connection's task: whom to wake.
    pub(crate) fn register(&self, task: &Waker) {
        let mut known = self.ready.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }

    /// Handlers under way.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the requests under way.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The earliest deadline of any of them, or an earlier moment.
    pub(crate) fn deadline_min(&self) -> Option<Instant> {
        self.deadline_min
    }

    /// The waker with which the next handler is to be polled first: [`Jobs::insert`] keeps it.
    pub(crate) fn next_waker(&mut self) -> &Waker {
        let index = match self.free.last() {
            Some(index) => *index as usize,
            None => {
                let index = self.seats.len();
                let alarm = Arc::new(Alarm {
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

    /// Keeps a handler that was polled with [`Jobs::next_waker`] and waits.
    pub(crate) fn insert(&mut self, running: Running) {
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

    /// Whether a handler was woken.
    pub(crate) fn is_ready(&self) -> bool {
        !self.due.is_empty() || self.ready.is_dirty.load(Ordering::Acquire)
    }

    /// Notes who was woken so far: [`Jobs::next_ended`] polls those and nobody who wakes himself
    /// meanwhile, so that the connection gets its turn too.
    pub(crate) fn gather(&mut self) {
        if self.ready.is_dirty.swap(false, Ordering::AcqRel) {
            self.due.extend(self.ready.woken.lock().drain(..));
        }
    }

    /// Polls those who were woken until one ends; its answer is appended to `out`.
    pub(crate) fn next_ended(&mut self, outlet: &Outlet, out: &mut Vec<u8>) -> Option<Ended> {
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

    /// The stream of a call that is under way.
    pub(crate) fn stream(&self, correlation: Correlation) -> Option<&Arc<Stream>> {
        let index = *self.by_correlation.get(&correlation)?;
        let running = self.seats[index as usize].running.as_ref()?;
        running.stream.as_ref()
    }

    /// Drops the handler of a call, if it is under way.
    pub(crate) fn cancel(&mut self, correlation: Correlation) -> Option<Ended> {
        let index = *self.by_correlation.get(&correlation)?;
        self.remove(index)
    }

    /// Drops the handlers whose time is up.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Ended> {
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

    fn remove(&mut self, index: u32) -> Option<Ended> {
        let running = self.seats[index as usize].running.take()?;
        let Running {
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
        Some(Ended {
            origin,
            size,
            stream,
        })
    }
}
