//! Sliding window of calls, awaited in order.

use std::cell::RefCell;
use std::collections::VecDeque;

use client::Caller;

use super::{Amount, Calls, ECHO, LoadSpec, check};
use meter::clock::now_ns;

/// Runs the calls. A call is timed from when its body is taken to when its reply is returned in
/// order.
pub(super) async fn run(spec: &LoadSpec, caller: &Caller, amount: Amount) -> Calls {
    let body = vec![7; spec.size];
    let calls = RefCell::new(Calls::begin(amount));
    let sent = RefCell::new(VecDeque::with_capacity(spec.in_flight as usize));
    let bodies = std::iter::from_fn(|| {
        let sent_ns = now_ns();
        let more = calls.borrow_mut().next(sent_ns);
        more.then(|| {
            sent.borrow_mut().push_back(sent_ns);
            &body
        })
    });
    let mut replies = caller.call_all(ECHO, bodies, spec.in_flight as usize);
    while let Some(outcome) = replies.next().await {
        let done_ns = now_ns();
        let sent_ns = sent.borrow_mut().pop_front().unwrap_or(done_ns);
        let outcome = outcome.and_then(|reply| check(&reply, spec.size));
        calls.borrow_mut().ended(sent_ns, done_ns, outcome);
    }
    drop(replies);
    calls.into_inner()
}
