use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;
use crate::state::functions::Function;
use crate::state::outcome::Callback;

/// Outcome of each call, by its tag.
type Ends = Arc<Mutex<HashMap<u64, Vec<String>>>>;

/// A call table whose calls all have one callback, which records the outcomes.
struct Bench {
    pending: PendingCalls,
    ends: Ends,
    function: Function,
    made: u64,
}

impl Bench {
    fn new() -> Self {
        let ends = Ends::default();
        let noted = ends.clone();
        let callback: Arc<Callback> = Arc::new(move |batch| {
            for (tag, outcome) in batch {
                let line = match outcome {
                    Ok(body) => String::from_utf8_lossy(body).into_owned(),
                    Err(error) => error.code.to_string(),
                };
                noted.lock().entry(tag).or_default().push(line);
            }
        });
        Self {
            pending: PendingCalls::default(),
            ends,
            function: Function::new(callback),
            made: 0,
        }
    }

    /// Adds a call with a limit of `time_ms` that starts now.
    fn call(&mut self, now: Millis, time_ms: u64) -> (u64, Correlation) {
        let call = self.fresh_call(time_ms);
        self.pending.stamp(now);
        call
    }

    /// Adds a call with a limit of `time_ms` that starts at the next turn.
    fn fresh_call(&mut self, time_ms: u64) -> (u64, Correlation) {
        self.made += 1;
        let (function, tag) = (&self.function, self.made);
        let holder =
            |functions: &mut Functions| Holder::Callback(functions.enter(function, 0), tag);
        let timeout = Timeout::new(Some(Duration::from_millis(time_ms)));
        let correlation = self.pending.insert(holder, 0, timeout);
        (self.made, correlation)
    }

    fn answer(&mut self, correlation: Correlation, body: &[u8]) {
        self.change(
            |pending, completions| pending.answer(correlation, false, Ok(body), body, completions),
            body,
        );
    }

    fn expire(&mut self, now: Millis) -> usize {
        let late = |_| CallError::new(ErrorCode::DeadlineExceeded, "late");
        let mut count = 0;
        self.change(
            |pending, completions| count = pending.expire(now, late, completions).len(),
            &[],
        );
        count
    }

    fn fail_all(&mut self, now: Millis) {
        let lost = |_| CallError::new(ErrorCode::Unconfirmed, "lost");
        self.change(
            |pending, completions| pending.fail_all(now, lost, completions),
            &[],
        );
    }

    fn change(&mut self, change: impl FnOnce(&mut PendingCalls, &mut Completions), chunk: &[u8]) {
        let mut completions = Completions::default();
        change(&mut self.pending, &mut completions);
        completions.finish(chunk);
    }

    fn ends(&self, tag: u64) -> Vec<String> {
        self.ends.lock().get(&tag).cloned().unwrap_or_default()
    }
}

#[test]
fn a_late_answer_never_matches_a_newer_call_in_the_slot() {
    let mut bench = Bench::new();
    let (first, old) = bench.call(0, 1000);
    bench.answer(old, b"one");
    let (second, new) = bench.call(0, 1000);
    assert_eq!((new.slot, new.generation), (old.slot, old.generation + 1));
    bench.answer(old, b"late");
    assert!(bench.ends(second).is_empty());
    bench.answer(new, b"two");
    assert_eq!(
        (bench.ends(first), bench.ends(second)),
        (vec!["one".into()], vec!["two".into()])
    );
    assert_eq!(bench.pending.occupied(), 0);
}

#[test]
fn a_deadline_never_passes_before_the_call_starts() {
    let mut bench = Bench::new();
    let (_, answered) = bench.call(0, 10);
    bench.answer(answered, b"one");
    let (tag, _) = bench.fresh_call(10);
    assert_eq!(bench.expire(20), 0);
    assert_eq!(bench.expire(30), 0);
    assert_eq!(bench.expire(31), 1);
    assert_eq!(bench.ends(tag), ["deadline_exceeded"]);
}

#[test]
fn an_abandoned_call_keeps_its_slot_until_answered() {
    let mut bench = Bench::new();
    let (tag, correlation) = bench.call(0, 10);
    assert_eq!(bench.expire(10), 1);
    assert_eq!(bench.ends(tag), ["deadline_exceeded"]);
    assert_eq!(
        bench.pending.occupied(),
        1,
        "the peer still owes the answer"
    );
    let (_, other) = bench.call(10, 10);
    assert_ne!(other.slot, correlation.slot);
    bench.answer(correlation, b"late");
    assert_eq!(bench.ends(tag), ["deadline_exceeded"]);
    assert_eq!(bench.pending.occupied(), 1);
}

proptest! {
    #[test]
    fn every_call_ends_exactly_once_and_slots_stay_dense(
        steps in prop::collection::vec((0u8..5, 0usize..50, 1u64..100), 0..150)
    ) {
        let mut bench = Bench::new();
        let mut known: Vec<(u64, Correlation)> = Vec::new();
        let mut now = 0;
        let mut used = 0;
        for (verb, index, time) in steps {
            match verb {
                0 | 1 => {
                    let (tag, correlation) = bench.call(now, time);
                    prop_assert!(correlation.slot <= used, "a slot was skipped");
                    used = used.max(correlation.slot + 1);
                    known.push((tag, correlation));
                }
                2 | 3 if !known.is_empty() => {
                    // Some calls have ended already; then nothing may happen.
                    let (_, correlation) = known[index % known.len()];
                    bench.answer(correlation, b"reply");
                }
                _ => {
                    now += time;
                    bench.expire(now);
                }
            }
        }
        bench.fail_all(now);
        prop_assert_eq!(bench.pending.occupied(), 0);
        for (tag, _) in known {
            prop_assert_eq!(bench.ends(tag).len(), 1, "call {}: {:?}", tag, bench.ends(tag));
        }
    }
}
