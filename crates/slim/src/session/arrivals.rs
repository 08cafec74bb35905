//! `Arrivals`: receive window of a reliable session, which restores the order of sending.
//!
//! ```text
//! next ─▸ | missing | held | lost | held |      a slot for each number up to the last that came
//! ```
//!
//! A missing message is requested again as often as the session retries, and then counts as lost.
//! Numbers begin with 1 and wrap at 2^31. A message too far ahead is neither stored nor
//! acknowledged, so the sender sends it again.

use std::collections::VecDeque;

use crate::session::Reliability;

/// Maximum number of slots in the window.
const SLOTS_MAX: u32 = 256;
/// Maximum bytes of held messages.
const HELD_SIZE_MAX: usize = 4 << 20;

/// Number of message numbers.
const NUMBERS: u32 = 1 << 31;

/// Result of receiving a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceiveOutcome {
    /// The message was stored.
    New,
    /// The message was received before.
    Duplicate,
    /// The window has no slot for the message now.
    TooFar,
}

enum Slot<T> {
    Missing { again_ns: u64, left: u32 },
    Held(T, usize),
    Lost,
}

/// Receive window of a reliable session.
pub(super) struct Arrivals<T> {
    next: u32,
    slots: VecDeque<Slot<T>>,
    held_size: usize,
}

impl<T> Arrivals<T> {
    pub(super) fn new() -> Self {
        Self {
            next: 1,
            slots: VecDeque::new(),
            held_size: 0,
        }
    }

    /// Receives a message of `size` bytes.
    pub(super) fn take(
        &mut self,
        number: u32,
        message: T,
        size: usize,
        timing: Reliability,
        now_ns: u64,
    ) -> ReceiveOutcome {
        let Some(index) = self.index(number) else {
            return ReceiveOutcome::Duplicate;
        };
        // The next message is delivered at once and not held.
        let is_too_much = index > 0 && self.held_size + size > HELD_SIZE_MAX;
        if index >= SLOTS_MAX as usize || is_too_much {
            return ReceiveOutcome::TooFar;
        }
        while self.slots.len() <= index {
            self.slots.push_back(Slot::Missing {
                again_ns: now_ns,
                left: timing.retries,
            });
        }
        let slot = &mut self.slots[index];
        if !matches!(slot, Slot::Missing { .. }) {
            return ReceiveOutcome::Duplicate;
        }
        *slot = Slot::Held(message, size);
        self.held_size += size;
        ReceiveOutcome::New
    }

    /// Marks a message as lost, because the sender no longer has it.
    pub(super) fn lose(&mut self, number: u32) {
        let index = self.index(number);
        if let Some(slot) = index.and_then(|index| self.slots.get_mut(index))
            && matches!(slot, Slot::Missing { .. })
        {
            *slot = Slot::Lost;
        }
    }

    /// Returns the numbers of missing messages to request now.
    pub(super) fn ask_for(&mut self, timing: Reliability, now_ns: u64) -> Vec<u32> {
        let mut numbers = Vec::new();
        for (index, slot) in (0..).zip(&mut self.slots) {
            let Slot::Missing { again_ns, left } = slot else {
                continue;
            };
            if now_ns < *again_ns {
                continue;
            }
            if *left == 0 {
                *slot = Slot::Lost;
                continue;
            }
            *left -= 1;
            *again_ns = now_ns + timing.interval_ns;
            numbers.push((self.next + index) % NUMBERS);
        }
        numbers
    }

    /// Returns the next message once all messages before it are delivered or lost.
    pub(super) fn pop(&mut self) -> Option<T> {
        loop {
            match self.slots.pop_front()? {
                Slot::Held(message, size) => {
                    self.next = (self.next + 1) % NUMBERS;
                    self.held_size -= size;
                    return Some(message);
                }
                Slot::Lost => self.next = (self.next + 1) % NUMBERS,
                missing @ Slot::Missing { .. } => {
                    self.slots.push_front(missing);
                    return None;
                }
            }
        }
    }

    /// Returns the slot of a number; `None` if it was delivered before.
    fn index(&self, number: u32) -> Option<usize> {
        let distance = number.wrapping_sub(self.next) % NUMBERS;
        (distance < NUMBERS / 2).then_some(distance as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Reliability = Reliability {
        interval_ns: 10,
        retries: 2,
    };

    /// Receives messages, and checks the deliveries and the requests at time 0.
    fn check(numbers: &[u32], delivered: &[u32], asked: &[u32]) -> Arrivals<u32> {
        let mut arrivals = Arrivals::new();
        for number in numbers {
            arrivals.take(*number, *number, 1, TIMING, 0);
        }
        let popped: Vec<_> = std::iter::from_fn(|| arrivals.pop()).collect();
        assert_eq!(popped, delivered);
        assert_eq!(arrivals.ask_for(TIMING, 0), asked);
        arrivals
    }

    #[test]
    fn messages_in_any_order_are_delivered_in_sequence() {
        check(&[1, 2, 3], &[1, 2, 3], &[]);
        check(&[3, 1, 2], &[1, 2, 3], &[]);
        check(&[2, 4], &[], &[1, 3]);
        check(&[1, 4, 2], &[1, 2], &[3]);
    }

    #[test]
    fn a_duplicate_is_delivered_once() {
        let mut arrivals = check(&[1, 1, 3, 3], &[1], &[2]);
        assert_eq!(arrivals.take(1, 1, 1, TIMING, 0), ReceiveOutcome::Duplicate);
        assert_eq!(arrivals.take(3, 3, 1, TIMING, 0), ReceiveOutcome::Duplicate);
        assert_eq!(arrivals.take(2, 2, 1, TIMING, 0), ReceiveOutcome::New);
        assert_eq!((arrivals.pop(), arrivals.pop()), (Some(2), Some(3)));
    }

    #[test]
    fn missing_messages_are_requested_repeatedly_and_then_lost() {
        let mut arrivals = check(&[2], &[], &[1]);
        assert_eq!(arrivals.ask_for(TIMING, 9), [0; 0]);
        assert_eq!(arrivals.ask_for(TIMING, 10), [1]);
        assert_eq!(arrivals.pop(), None);
        assert_eq!(arrivals.ask_for(TIMING, 20), [0; 0]);
        assert_eq!(arrivals.pop(), Some(2));
        assert_eq!(
            arrivals.take(1, 1, 1, TIMING, 20),
            ReceiveOutcome::Duplicate
        );
    }

    #[test]
    fn messages_lost_by_the_sender_are_skipped() {
        let mut arrivals = check(&[3], &[], &[1, 2]);
        arrivals.lose(1);
        arrivals.lose(7);
        assert_eq!(arrivals.pop(), None);
        arrivals.lose(2);
        assert_eq!(arrivals.pop(), Some(3));
    }

    #[test]
    fn slots_and_bytes_are_bounded() {
        let mut arrivals = check(&[], &[], &[]);
        let far = 1 + SLOTS_MAX;
        assert_eq!(
            arrivals.take(far, far, 1, TIMING, 0),
            ReceiveOutcome::TooFar
        );
        assert_eq!(
            arrivals.take(NUMBERS / 2, 0, 1, TIMING, 0),
            ReceiveOutcome::TooFar
        );
        assert_eq!(
            arrivals.take(NUMBERS - 1, 0, 1, TIMING, 0),
            ReceiveOutcome::Duplicate
        );
        assert_eq!(
            arrivals.take(2, 2, HELD_SIZE_MAX, TIMING, 0),
            ReceiveOutcome::New
        );
        assert_eq!(arrivals.take(3, 3, 1, TIMING, 0), ReceiveOutcome::TooFar);
        assert_eq!(arrivals.slots.len(), 2);
    }

    #[test]
    fn message_numbers_wrap_around() {
        let mut arrivals = Arrivals::new();
        arrivals.next = NUMBERS - 1;
        for number in [0, NUMBERS - 1] {
            assert_eq!(
                arrivals.take(number, number, 1, TIMING, 0),
                ReceiveOutcome::New
            );
        }
        assert_eq!(arrivals.pop(), Some(NUMBERS - 1));
        assert_eq!(arrivals.pop(), Some(0));
        assert_eq!(arrivals.next, 1);
    }
}
