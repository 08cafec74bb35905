//! Who waits for something new to see in a partition that is shown before it is durable: what is
//! durable wakes by itself.

use std::task::Waker;

/// Bounded by the fetches that there are: each takes its waker back.
#[derive(Default)]
pub(super) struct Watchers {
    waiting: Vec<(u64, Waker)>,
    numbers: u64,
}

/// Those who are to be woken, once no lock is held.
#[must_use = "they wait"]
#[derive(Default)]
pub(super) struct Woken(Vec<(u64, Waker)>);

impl Watchers {
    /// Has the waker woken once; what it is called from now on.
    pub(super) fn add(&mut self, waker: &Waker) -> u64 {
        self.numbers += 1;
        self.waiting.push((self.numbers, waker.clone()));
        self.numbers
    }

    /// It need not be woken any more.
    pub(super) fn remove(&mut self, number: u64) {
        self.waiting.retain(|(other, _)| *other != number);
    }

    /// There is something new.
    pub(super) fn take(&mut self) -> Woken {
        Woken(std::mem::take(&mut self.waiting))
    }
}

impl Woken {
    /// Wakes them.
    pub(super) fn wake(self) {
        self.0.into_iter().for_each(|(_, waker)| waker.wake());
    }
}
