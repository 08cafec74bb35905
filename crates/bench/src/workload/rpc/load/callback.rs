//! A window of calls in which each reply makes the next call of its slot.

use std::sync::Arc;

use client::{CallError, Callbacks, Caller};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Amount, Calls, ECHO, LoadSpec, check};
use crate::clock::now_ns;
use crate::workload::role::Failure;

/// What the slots share. One thread: the lock is never waited for.
struct Chain {
    state: Mutex<State>,
    body: Vec<u8>,
    done: Notify,
}

struct State {
    /// Taken away at the end, because its function holds the chain.
    callbacks: Option<Callbacks>,
    calls: Calls,
    /// When the call of each slot was made.
    sent_ns: Vec<u64>,
    running: u32,
}

pub(super) async fn run(
    spec: &LoadSpec,
    caller: &Caller,
    amount: Amount,
) -> Result<Calls, Failure> {
    let chain = Arc::new(Chain {
        state: Mutex::new(State {
            callbacks: None,
            calls: Calls::begin(amount),
            sent_ns: vec![0; spec.in_flight as usize],
            running: spec.in_flight,
        }),
        body: vec![7; spec.size],
        done: Notify::new(),
    });
    let answered = chain.clone();
    let callbacks = caller.callbacks(ECHO, move |slot, outcome| answered.answered(slot, outcome));
    chain.state.lock().callbacks = Some(callbacks);
    for slot in 0..u64::from(spec.in_flight) {
        chain.go_on(&mut chain.state.lock(), slot, now_ns());
    }
    chain.done.notified().await;
    let callbacks = chain.state.lock().callbacks.take();
    drop(callbacks);
    let chain = Arc::into_inner(chain).ok_or("a callback is still running")?;
    Ok(chain.state.into_inner().calls)
}

impl Chain {
    fn answered(&self, slot: u64, outcome: Result<&[u8], &CallError>) {
        let done_ns = now_ns();
        let outcome = match outcome {
            Ok(reply) => check(reply, self.body.len()),
            Err(error) => Err(error.clone()),
        };
        let mut state = self.state.lock();
        let sent_ns = state.sent_ns[slot as usize];
        state.calls.ended(sent_ns, done_ns, outcome);
        self.go_on(&mut state, slot, done_ns);
    }

    /// Makes the next call of a slot; the last slot that has none ends the run.
    fn go_on(&self, state: &mut State, slot: u64, now_ns: u64) {
        if !state.call(slot, &self.body, now_ns) {
            state.running -= 1;
            if state.running == 0 {
                self.done.notify_one();
            }
        }
    }
}

impl State {
    fn call(&mut self, slot: u64, body: &[u8], now_ns: u64) -> bool {
        let Some(callbacks) = &self.callbacks else {
            return false;
        };
        if !self.calls.next(now_ns) {
            return false;
        }
        self.sent_ns[slot as usize] = now_ns;
        match callbacks.call(slot, body) {
            Ok(()) => true,
            Err(error) => {
                self.calls.ended(now_ns, now_ns, Err(error));
                false
            }
        }
    }
}
