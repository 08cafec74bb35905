//! The queue of a connection's answers, which are sent in the order of the requests.
//!
//! A request is decided when it is read; only its answer waits. Only the oldest answer is polled, so
//! that the task is woken once for all that become known together.

use std::collections::VecDeque;
use std::task::Poll;

/// The limit of a connection on waiting answers. Above it, no more requests are read.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Maximum number of answers.
    pub count: usize,
    /// Maximum size of their requests and of finished answers, in bytes.
    pub size: usize,
}

/// The queue of answers; see the module's documentation.
#[derive(Debug)]
pub struct AnswerQueue<A> {
    bound: Bound,
    /// The answers, each with the bytes that it counts as.
    waiting: VecDeque<(A, usize)>,
    /// The number of requests that wait elsewhere and count as answers.
    outside: usize,
    /// The bytes of all.
    size: usize,
}

impl<A> AnswerQueue<A> {
    /// Creates an empty queue.
    pub fn new(bound: Bound) -> Self {
        Self {
            bound,
            waiting: VecDeque::new(),
            outside: 0,
            size: 0,
        }
    }

    /// Adds the newest answer, which counts as `size` bytes.
    pub fn push(&mut self, answer: A, size: usize) {
        self.waiting.push_back((answer, size));
        self.size += size;
    }

    /// Counts a request that waits elsewhere, until [`AnswerQueue::end_work`].
    pub fn begin_work(&mut self, size: usize) {
        self.outside += 1;
        self.size += size;
    }

    /// Ends what [`AnswerQueue::begin_work`] began, with the same size.
    pub fn end_work(&mut self, size: usize) {
        self.outside -= 1;
        self.size -= size;
    }

    /// Returns whether no more requests should be read for now.
    pub fn is_full(&self) -> bool {
        self.waiting.len() + self.outside >= self.bound.count || self.size >= self.bound.size
    }

    /// Returns whether no answer waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Polls the oldest answer. Removes and returns it with its result, once it is known; `None`
    /// until then, and if no answer waits.
    pub fn poll_next<R>(&mut self, poll: impl FnOnce(&mut A) -> Poll<R>) -> Option<(A, R)> {
        let (oldest, _) = self.waiting.front_mut()?;
        let Poll::Ready(result) = poll(oldest) else {
            return None;
        };
        let (answer, size) = self.waiting.pop_front()?;
        self.size -= size;
        Some((answer, result))
    }

    /// Removes the oldest answer that matches.
    pub fn remove(&mut self, is_it: impl Fn(&A) -> bool) -> Option<A> {
        let index = self.waiting.iter().position(|(answer, _)| is_it(answer))?;
        let (answer, size) = self.waiting.remove(index)?;
        self.size -= size;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound {
        count: 3,
        size: 100,
    };

    fn ready(answer: &mut u32) -> Poll<u32> {
        Poll::Ready(*answer)
    }

    #[test]
    fn answers_leave_in_the_order_of_the_requests() {
        let mut queue = AnswerQueue::new(BOUND);
        assert_eq!(queue.poll_next(ready), None);
        (1..=3).for_each(|answer| queue.push(answer, 1));
        assert_eq!(queue.poll_next(|_| Poll::<()>::Pending), None);
        assert_eq!(queue.remove(|answer| *answer == 2), Some(2));
        assert_eq!(queue.remove(|answer| *answer == 2), None);
        assert_eq!(queue.poll_next(ready), Some((1, 1)));
        assert_eq!(queue.poll_next(ready), Some((3, 3)));
        assert!(queue.is_empty());
    }

    #[test]
    fn the_bound_counts_answers_bytes_and_work_outside_the_queue() {
        let mut queue = AnswerQueue::new(BOUND);
        queue.push(1, 0);
        queue.push(2, 0);
        assert!(!queue.is_full());
        queue.begin_work(10);
        assert!(queue.is_full());
        assert_eq!(queue.poll_next(ready), Some((1, 1)));
        assert!(!queue.is_full());
        queue.push(3, 90);
        assert!(queue.is_full());
        queue.end_work(10);
        assert!(!queue.is_full());
    }
}
