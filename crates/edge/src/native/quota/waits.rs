//! Waiting answers of one connection: for the disk, for the shared store, or for credit.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use model::ErrorCode;
use node::quotas::{Desk, Durable, Unconfirmed};
use node::{Bell, Failure, Ticket};
use tokio::time::{Instant, Sleep, sleep_until};

use super::frame::Frame;
use crate::native::outlet::{correlation, encode_failure};

/// The limits on answers that wait for the disk, and on their bytes; above either nothing is read.
const WAITING_MAX: usize = 8_192;
const WAITING_SIZE_MAX: usize = 8 << 20;
/// The largest number of takes that wait for credit.
const PARKED_MAX: usize = 1_024;

/// The waiting answers of one connection.
#[derive(Default)]
pub(super) struct Waits {
    /// Answers that wait for the disk, in the order of the requests.
    durable: VecDeque<Waiting>,
    durable_size: usize,
    /// Takes that wait for credit or for a store, in no order: the queues belong to the node.
    parked: Vec<ParkedTake>,
    /// The number of takes that a store is asked about.
    asked: usize,
    bell: Arc<Bell>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// An answer that waits for the disk.
struct Waiting {
    tag: Ticket,
    durable: Durable,
    frame: Box<[u8]>,
}

/// An answer that waits for credit, or for the store of the limits.
struct ParkedTake {
    tag: Ticket,
    frame: Frame,
    /// True if it waits for a store, which ends soon and without a client's action.
    is_asking: bool,
    /// When to poll again, unless it is woken before.
    again: Instant,
    woken: Arc<Woken>,
}

/// The outcome of parking takes.
pub(super) enum Parking {
    /// They are decided.
    Done(Frame),
    /// They wait here.
    Waits,
    /// They would have to wait, and there is no room.
    Full,
}

/// The waker of one waiting answer.
struct Woken {
    is_woken: AtomicBool,
    bell: Arc<Bell>,
}

impl Woken {
    fn new(bell: &Arc<Bell>) -> Arc<Self> {
        let (is_woken, bell) = (AtomicBool::new(false), bell.clone());
        Arc::new(Self { is_woken, bell })
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.bell.ring();
    }
}

impl Waits {
    /// Returns whether the limit on waiting answers is reached.
    pub(super) fn is_full(&self) -> bool {
        let is_asking = self.asked >= WAITING_MAX;
        is_asking || self.durable.len() >= WAITING_MAX || self.durable_size >= WAITING_SIZE_MAX
    }

    /// Stores an answer until the record that it depends on is durable.
    pub(super) fn push(&mut self, tag: Ticket, durable: Durable, frame: Box<[u8]>) {
        self.durable_size += frame.len();
        self.durable.push_back(Waiting {
            tag,
            durable,
            frame,
        });
    }

    /// Sends the answers whose records are durable, in order; the task is woken for the oldest of
    /// the others.
    pub(super) fn poll_durable(&mut self, cx: &Context<'_>, mut send: impl FnMut(&[u8])) {
        while let Some(oldest) = self.durable.front() {
            let Poll::Ready(known) = oldest.durable.poll_durable(cx.waker()) else {
                return;
            };
            match known {
                Ok(()) => send(&oldest.frame),
                Err(Unconfirmed) => {
                    let message = Unconfirmed.to_string();
                    let failure = Failure::new(ErrorCode::Unconfirmed, &message).after_sending();
                    let mut frame = Vec::new();
                    encode_failure(failure, correlation(oldest.tag), &mut frame);
                    send(&frame);
                }
            }
            self.durable_size -= oldest.frame.len();
            self.durable.pop_front();
        }
    }

    /// Polls takes for the first time.
    pub(super) fn park(
        &mut self,
        tag: Ticket,
        mut frame: Frame,
        is_asking: bool,
        desk: &mut Desk,
    ) -> Parking {
        let woken = Woken::new(&self.bell);
        let Some(pause) = frame.poll(desk, &Waker::from(woken.clone())) else {
            return Parking::Done(frame);
        };
        if !is_asking && self.parked.len() >= PARKED_MAX {
            return Parking::Full;
        }
        let again = Instant::now() + pause;
        self.asked += if is_asking { frame.gap_count() } else { 0 };
        self.parked.push(ParkedTake {
            tag,
            frame,
            is_asking,
            again,
            woken,
        });
        // The timer may have to be set earlier.
        self.bell.note();
        Parking::Waits
    }

    /// Returns takes that have waited and are decided now. The task is woken for the others only
    /// after this has returned `None`.
    pub(super) fn poll_parked(
        &mut self,
        cx: &mut Context<'_>,
        desk: &mut Desk,
    ) -> Option<(Ticket, Frame)> {
        if self.parked.is_empty() {
            self.timer = None;
            return None;
        }
        self.bell.listen(cx.waker());
        loop {
            let timer = self.timer.as_mut();
            let is_time = timer.is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
            if !self.bell.has_rung() && !is_time {
                return None;
            }
            if let Some(decided) = self.look(desk) {
                // There may be others.
                self.bell.note();
                return Some(decided);
            }
            let earliest = self.parked.iter().map(|place| place.again).min();
            self.timer = earliest.map(|at| Box::pin(sleep_until(at)));
        }
    }

    /// Polls the answers that were woken or are due, until one is decided.
    fn look(&mut self, desk: &mut Desk) -> Option<(Ticket, Frame)> {
        let now = Instant::now();
        for index in 0..self.parked.len() {
            let place = &mut self.parked[index];
            let is_woken = place.woken.is_woken.swap(false, Ordering::AcqRel);
            if !is_woken && now < place.again {
                continue;
            }
            let before = place.frame.gap_count();
            let pause = place.frame.poll(desk, &Waker::from(place.woken.clone()));
            if place.is_asking {
                self.asked -= before - place.frame.gap_count();
            }
            match pause {
                Some(pause) => place.again = now + pause,
                None => {
                    let place = self.parked.swap_remove(index);
                    return Some((place.tag, place.frame));
                }
            }
        }
        None
    }

    /// Cancels the takes of this tag; returns false if there are none.
    pub(super) fn cancel(&mut self, tag: Ticket) -> bool {
        let found = self.parked.iter().position(|place| place.tag == tag);
        let cancelled = found.map(|index| self.parked.swap_remove(index));
        if let Some(place) = cancelled.as_ref().filter(|place| place.is_asking) {
            self.asked -= place.frame.gap_count();
        }
        cancelled.is_some()
    }
}
