//! Waiting takes of one connection: for the shared store of quotas, or for credit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use platform::Bell;
use quota_service::Desk;
use routing::Ticket;
use tokio::time::{Instant, Sleep, sleep_until};

use super::frame::Frame;
use crate::answers::Answers;

/// The largest number of takes that wait for credit.
const PARKED_MAX: usize = 1_024;

/// The waiting takes of one connection.
#[derive(Default)]
pub(super) struct Waits {
    /// Takes that wait for credit or for a store, in no order: the queues belong to the node.
    parked: Vec<ParkedTake>,
    bell: Arc<Bell>,
    timer: Option<Pin<Box<Sleep>>>,
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
    pub(super) fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    /// Polls takes for the first time. Those that wait for a store count towards the bound on the
    /// connection's answers.
    pub(super) fn park(
        &mut self,
        answers: &mut Answers,
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
        if is_asking {
            (0..frame.gap_count()).for_each(|_| answers.begin_work(0));
        }
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
    pub(super) fn poll(
        &mut self,
        answers: &mut Answers,
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
            if let Some(decided) = self.look(answers, desk) {
                // There may be others.
                self.bell.note();
                return Some(decided);
            }
            let earliest = self.parked.iter().map(|place| place.again).min();
            self.timer = earliest.map(|at| Box::pin(sleep_until(at)));
        }
    }

    /// Polls the answers that were woken or are due, until one is decided.
    fn look(&mut self, answers: &mut Answers, desk: &mut Desk) -> Option<(Ticket, Frame)> {
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
                (place.frame.gap_count()..before).for_each(|_| answers.end_work(0));
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
    pub(super) fn cancel(&mut self, answers: &mut Answers, tag: Ticket) -> bool {
        let found = self.parked.iter().position(|place| place.tag == tag);
        let cancelled = found.map(|index| self.parked.swap_remove(index));
        if let Some(place) = cancelled.as_ref().filter(|place| place.is_asking) {
            (0..place.frame.gap_count()).for_each(|_| answers.end_work(0));
        }
        cancelled.is_some()
    }
}
