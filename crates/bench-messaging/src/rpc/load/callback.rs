//! Window of calls in which each reply makes the next call of its slot.
//!
//! The slots belong to the thread, like all state of a role: there is no lock between a reply and
//! the next call.

use std::cell::RefCell;
use std::sync::Arc;

use client::{CallError, Callbacks, Caller};
use tokio::sync::Notify;

use super::{Amount, Calls, ECHO, LoadSpec, check};
use bench::workload::role::Failure;
use meter::clock::now_ns;

/// Number of clock readings per window. A latency is as long as the window takes, so a reading that
/// serves a sixteenth of the window's replies is off by at most a sixteenth of a latency. A call
/// begins at the reading that ended the one before it, so no time is lost between readings.
const READINGS: u32 = 16;

thread_local! {
    static SLOTS: RefCell<Option<Slots>> = const { RefCell::new(None) };
}

/// Calls in flight.
struct Slots {
    callbacks: Callbacks,
    calls: Calls,
    body: Vec<u8>,
    /// Send time of each slot's call.
    sent_ns: Vec<u64>,
    running: u32,
    clock: Clock,
    done: Arc<Notify>,
}

/// Clock that is read once for several replies.
struct Clock {
    now_ns: u64,
    /// Replies for which the current reading is still used.
    left: u32,
    serves: u32,
}

pub(super) async fn run(
    spec: &LoadSpec,
    caller: &Caller,
    amount: Amount,
) -> Result<Calls, Failure> {
    let done = Arc::new(Notify::new());
    let slots = Slots {
        callbacks: caller.callbacks(ECHO, answered),
        calls: Calls::begin(amount),
        body: vec![7; spec.size],
        sent_ns: vec![0; spec.in_flight as usize],
        running: spec.in_flight,
        clock: Clock::new(spec.in_flight / READINGS),
        done: done.clone(),
    };
    SLOTS.set(Some(slots));
    for slot in 0..u64::from(spec.in_flight) {
        with_slots(|slots| slots.call_next(slot, now_ns()));
    }
    done.notified().await;
    let slots = SLOTS.take().ok_or("the slots are gone")?;
    Ok(slots.calls)
}

#[inline]
fn with_slots(change: impl FnOnce(&mut Slots)) {
    SLOTS.with_borrow_mut(|slots| slots.as_mut().map(change));
}

#[inline]
fn answered(slot: u64, outcome: Result<&[u8], &CallError>) {
    with_slots(|slots| {
        let done_ns = slots.clock.read(now_ns);
        let outcome = match outcome {
            Ok(reply) => check(reply, slots.body.len()),
            Err(error) => Err(error.clone()),
        };
        let sent_ns = slots.sent_ns[slot as usize];
        slots.calls.ended(sent_ns, done_ns, outcome);
        slots.call_next(slot, done_ns);
    });
}

impl Slots {
    /// Makes the next call of a slot. The last slot to finish ends the run.
    fn call_next(&mut self, slot: u64, now_ns: u64) {
        if !self.call(slot, now_ns) {
            self.running -= 1;
            if self.running == 0 {
                self.done.notify_one();
            }
        }
    }

    fn call(&mut self, slot: u64, now_ns: u64) -> bool {
        if !self.calls.next(now_ns) {
            return false;
        }
        self.sent_ns[slot as usize] = now_ns;
        match self.callbacks.call(slot, &self.body) {
            Ok(()) => true,
            Err(error) => {
                self.calls.ended(now_ns, now_ns, Err(error));
                false
            }
        }
    }
}

impl Clock {
    fn new(serves: u32) -> Self {
        Self {
            now_ns: 0,
            left: 0,
            serves: serves.max(1),
        }
    }

    fn read(&mut self, look: impl FnOnce() -> u64) -> u64 {
        if self.left == 0 {
            self.now_ns = look();
            self.left = self.serves;
        }
        self.left -= 1;
        self.now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_at_most_16_times_per_window() {
        let looks = |in_flight: u32| {
            let mut clock = Clock::new(in_flight / READINGS);
            let mut looks = 0;
            for _ in 0..in_flight {
                let mut look = || {
                    looks += 1;
                    looks
                };
                let read = clock.read(&mut look);
                assert_eq!(read, looks);
            }
            looks
        };
        assert_eq!([1, 10, 64, 256].map(looks), [1, 10, 16, 16]);
    }
}
