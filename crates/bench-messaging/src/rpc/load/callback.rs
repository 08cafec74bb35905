//! Window of calls in which each reply makes the next call of its slot.
//!
//! The slots belong to the thread, like all state of a role: there is no lock between a reply and
//! the next call. Replies that arrive together are handled together, as the floor does: the clock is
//! read once for them, so a latency includes the wait for the rest of its batch, and their next
//! calls are made under one lock.

use std::cell::RefCell;
use std::sync::Arc;

use client::{CallError, Callbacks, Caller, RefusedCall, ReplyBatch};
use tokio::sync::Notify;

use super::{Amount, Calls, ECHO, LoadSpec, check};
use bench::workload::role::Failure;
use meter::clock::now_ns;

/// Calls that are made together at most.
const TOGETHER_MAX: usize = 32;

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
    done: Arc<Notify>,
}

pub(super) async fn run(
    spec: &LoadSpec,
    caller: &Caller,
    amount: Amount,
) -> Result<Calls, Failure> {
    let done = Arc::new(Notify::new());
    let slots = Slots {
        callbacks: caller.callbacks_in_batches(ECHO, answered),
        calls: Calls::begin(amount),
        body: vec![7; spec.size],
        sent_ns: vec![0; spec.in_flight as usize],
        running: spec.in_flight,
        done: done.clone(),
    };
    SLOTS.set(Some(slots));
    let all: Vec<u64> = (0..u64::from(spec.in_flight)).collect();
    with_slots(|slots| {
        for together in all.chunks(TOGETHER_MAX) {
            slots.call_next(together, now_ns());
        }
    });
    done.notified().await;
    let slots = SLOTS.take().ok_or("the slots are gone")?;
    Ok(slots.calls)
}

#[inline]
fn with_slots(change: impl FnOnce(&mut Slots)) {
    SLOTS.with_borrow_mut(|slots| slots.as_mut().map(change));
}

fn answered(batch: &mut ReplyBatch<'_>) {
    with_slots(|slots| slots.take(batch, now_ns()));
}

impl Slots {
    /// Counts the outcomes of a batch and makes the next calls of its slots.
    fn take(&mut self, batch: &mut ReplyBatch<'_>, now_ns: u64) {
        let mut ended = [0; TOGETHER_MAX];
        while batch.len() > 0 {
            let mut count = 0;
            for (slot, outcome) in batch.by_ref().take(TOGETHER_MAX) {
                let outcome = match outcome {
                    Ok(reply) => check(reply, self.body.len()),
                    Err(error) => Err(error.clone()),
                };
                let sent_ns = self.sent_ns[slot as usize];
                self.calls.ended(sent_ns, now_ns, outcome);
                ended[count] = slot;
                count += 1;
            }
            self.call_next(&ended[..count], now_ns);
        }
    }

    /// Makes the next call of each of these slots, at most [`TOGETHER_MAX`]. The last slot to finish
    /// ends the run.
    fn call_next(&mut self, slots: &[u64], now_ns: u64) {
        let mut next: [(u64, &[u8]); TOGETHER_MAX] = [(0, &[]); TOGETHER_MAX];
        let mut count = 0;
        for &slot in slots {
            if self.calls.next(now_ns) {
                self.sent_ns[slot as usize] = now_ns;
                next[count] = (slot, &self.body);
                count += 1;
            } else {
                self.running -= 1;
            }
        }
        if let Err(refused) = self.callbacks.call_many(&next[..count]) {
            let RefusedCall { accepted, error } = refused;
            refuse(&mut self.calls, count - accepted, now_ns, &error);
            self.running -= (count - accepted) as u32;
        }
        if self.running == 0 {
            self.done.notify_one();
        }
    }
}

/// Counts calls that were refused.
#[cold]
fn refuse(calls: &mut Calls, count: usize, now_ns: u64, error: &CallError) {
    for _ in 0..count {
        calls.ended(now_ns, now_ns, Err(error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use client::Client;

    use super::super::RpcMode;
    use super::super::server;
    use super::*;

    /// Runs this many calls. Returns the number of completed ones and of refused ones.
    fn counts(address: &str, in_flight: u32, in_flight_max: usize, count: u64) -> (u64, u64) {
        let runtime = bench::workload::role::runtime().unwrap();
        let calls = runtime.block_on(async {
            let listening = server::echo().listen(address).await.unwrap();
            let builder = Client::builder().in_flight_max(in_flight_max);
            let caller = builder.connect_caller(listening.address()).await.unwrap();
            let spec = LoadSpec {
                address: None,
                mode: RpcMode::Callback,
                in_flight,
                size: 16,
                amount: Amount::Calls(count),
            };
            run(&spec, &caller, spec.amount).await.unwrap()
        });
        let measured = calls.into_called().tally.over(1);
        let refused = measured.errors.get("busy").copied().unwrap_or(0);
        assert_eq!(measured.sent, count);
        (measured.completed, refused)
    }

    #[test]
    fn every_call_of_a_window_is_counted_once() {
        let together = TOGETHER_MAX as u32;
        for in_flight in [1, 10, together - 1, together, together + 1, 256] {
            let address = format!("inproc://callbacks-{in_flight}");
            assert_eq!(counts(&address, in_flight, 1_000, 2_000), (2_000, 0));
        }
        // Fewer calls than the window.
        assert_eq!(counts("inproc://callbacks-few", 100, 1_000, 7), (7, 0));
    }

    #[test]
    fn refused_calls_end_their_slots() {
        assert_eq!(
            counts("inproc://callbacks-full", 100, 60, 2_000),
            (1_960, 40)
        );
    }
}
