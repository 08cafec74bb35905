//! `Queue`: callers that wait for room, in order of arrival.
//!
//! Free room is offered to the callers at the front by waking them. Until a woken caller has come
//! back and taken its share, that share is reserved ([`Queue::woken`]) and a later caller cannot
//! take it. The queue has no clock and no window; its owner decides when to wake.

use std::collections::VecDeque;
use std::task::Waker;

use tokio::time::Instant;

/// Position in a queue.
pub(crate) type Ticket = u64;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: VecDeque<Entry>,
    ticket_next: Ticket,
    woken: usize,
    /// Lower bound of the deadlines; exact after a sweep.
    deadline_min: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    waker: Waker,
    deadline: Option<Instant>,
    is_woken: bool,
}

impl Queue {
    /// Enters the queue at the end.
    pub(crate) fn enter(&mut self, waker: Waker, deadline: Option<Instant>) -> Ticket {
        let ticket = self.ticket_next;
        self.ticket_next += 1;
        self.entries.push_back(Entry {
            ticket,
            waker,
            deadline,
            is_woken: false,
        });
        self.deadline_min = earlier(self.deadline_min, deadline);
        ticket
    }

    /// Returns how much room is offered and not taken yet.
    pub(crate) fn woken(&self) -> usize {
        self.woken
    }

    /// True if a caller waits that was not offered room.
    pub(crate) fn has_waiting(&self) -> bool {
        self.woken < self.entries.len()
    }

    /// Offers room to up to `count` callers, in order.
    pub(crate) fn wake(&mut self, count: usize, wakers: &mut Vec<Waker>) {
        let waiting = self.entries.len() - self.woken;
        let asleep = self.entries.iter_mut().filter(|entry| !entry.is_woken);
        for entry in asleep.take(count.min(waiting)) {
            entry.is_woken = true;
            self.woken += 1;
            wakers.push(entry.waker.clone());
        }
    }

    /// True if `ticket` was offered room and the front of the queue does not wait for more room.
    pub(crate) fn may_try(&self, ticket: Ticket) -> bool {
        let front_is_ready = self
            .entries
            .front()
            .is_some_and(|front| front.is_woken || front.ticket == ticket);
        let own = self.position(ticket).map(|index| &self.entries[index]);
        front_is_ready && own.is_some_and(|entry| entry.is_woken)
    }

    /// Stays in the queue at the same position, because there was no room or not enough.
    pub(crate) fn stay(&mut self, ticket: Ticket, waker: &Waker) {
        let Some(index) = self.position(ticket) else {
            return;
        };
        let entry = &mut self.entries[index];
        if std::mem::take(&mut entry.is_woken) {
            self.woken -= 1;
        }
        if !entry.waker.will_wake(waker) {
            entry.waker = waker.clone();
        }
    }

    /// Leaves the queue, whether or not the offered room was taken.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        if let Some(index) = self.position(ticket)
            && let Some(entry) = self.entries.remove(index)
            && entry.is_woken
        {
            self.woken -= 1;
        }
    }

    /// Returns a lower bound of the deadlines.
    pub(crate) fn deadline_min(&self) -> Option<Instant> {
        self.deadline_min
    }

    /// Wakes the callers whose deadline has passed, without offering them room.
    pub(crate) fn sweep(&mut self, now: Instant, wakers: &mut Vec<Waker>) {
        if self.deadline_min.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline_min = None;
        for entry in &self.entries {
            match entry.deadline {
                Some(deadline) if deadline <= now => wakers.push(entry.waker.clone()),
                deadline => self.deadline_min = earlier(self.deadline_min, deadline),
            }
        }
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.entries
            .binary_search_by_key(&ticket, |entry| entry.ticket)
            .ok()
    }
}

/// Returns the earlier of two optional times.
pub(crate) fn earlier(left: Option<Instant>, right: Option<Instant>) -> Option<Instant> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waker() -> Waker {
        Waker::noop().clone()
    }

    fn woken(queue: &mut Queue, count: usize) -> usize {
        let mut wakers = Vec::new();
        queue.wake(count, &mut wakers);
        wakers.len()
    }

    #[test]
    fn waiters_get_room_in_order_of_arrival() {
        let mut queue = Queue::default();
        let [first, second, third] = [(); 3].map(|()| queue.enter(waker(), None));
        assert_eq!(woken(&mut queue, 2), 2);
        assert!(queue.may_try(first) && queue.may_try(second) && !queue.may_try(third));
        assert_eq!((queue.woken(), queue.has_waiting()), (2, true));
        queue.leave(second);
        queue.leave(first);
        assert_eq!(woken(&mut queue, 5), 1);
        assert!(queue.may_try(third) && !queue.has_waiting());
    }

    #[test]
    fn a_waiter_that_needs_more_room_keeps_its_position() {
        let mut queue = Queue::default();
        let [large, small] = [(); 2].map(|()| queue.enter(waker(), None));
        woken(&mut queue, 2);
        queue.stay(large, &waker());
        assert!(!queue.may_try(small));
        queue.stay(small, &waker());
        assert_eq!(queue.woken(), 0);
        assert_eq!(woken(&mut queue, 1), 1);
        assert!(queue.may_try(large));
    }

    #[tokio::test(start_paused = true)]
    async fn only_expired_waiters_are_swept() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let at = |seconds| Some(now + std::time::Duration::from_secs(seconds));
        queue.enter(waker(), at(5));
        let soon = queue.enter(waker(), at(2));
        queue.enter(waker(), None);
        assert_eq!(queue.deadline_min(), at(2));
        let mut wakers = Vec::new();
        queue.sweep(now, &mut wakers);
        assert!(wakers.is_empty());
        queue.sweep(at(3).unwrap(), &mut wakers);
        assert_eq!((wakers.len(), queue.deadline_min()), (1, at(5)));
        queue.leave(soon);
        assert_eq!(queue.woken(), 0);
    }
}
