//! Watchers of a partition whose records are visible before they are durable. Durable records wake
//! readers through the journal instead.

use std::task::Waker;

/// The registered wakers. Their number is bounded by the fetches in progress: each one removes its
/// waker.
#[derive(Default)]
pub(super) struct Watchers {
    waiting: Vec<(u64, Waker)>,
    numbers: u64,
}

/// Wakers to wake once no lock is held.
#[must_use = "they wait"]
#[derive(Default)]
pub(super) struct Woken(Vec<(u64, Waker)>);

impl Watchers {
    /// Registers a waker for one wake-up; returns its number.
    pub(super) fn add(&mut self, waker: &Waker) -> u64 {
        self.numbers += 1;
        self.waiting.push((self.numbers, waker.clone()));
        self.numbers
    }

    /// Removes a waker.
    pub(super) fn remove(&mut self, number: u64) {
        self.waiting.retain(|(other, _)| *other != number);
    }

    /// Takes all wakers, because there is new data.
    pub(super) fn take(&mut self) -> Woken {
        Woken(std::mem::take(&mut self.waiting))
    }
}

impl Woken {
    /// Wakes all of them.
    pub(super) fn wake(self) {
        self.0.into_iter().for_each(|(_, waker)| waker.wake());
    }
}
