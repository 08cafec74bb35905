//! The load: slots that each keep one call in flight, in one task or in a task each.
//!
//! Serial and concurrent mode await all slots in one task. A library of futures has no callbacks;
//! what comes closest, and is cheapest in deep windows, is a task per slot, so that is what
//! callback mode is here.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use contract::{Bound, Failure, Load, Mode, Outcome, Tally, monotonic_ns};
use futures_util::TryStreamExt;
use futures_util::stream::FuturesUnordered;

/// One end of a connection that can be called; clones share the connection.
pub trait Caller: Clone + Send + 'static {
    /// Calls with a body and returns the size of the reply.
    fn call(&mut self, body: Bytes) -> impl Future<Output = Result<usize, String>> + Send;
}

/// Runs the warm-up and the window over one caller per connection.
pub async fn drive<C: Caller>(load: &Load, callers: &[C]) -> Outcome<Tally> {
    let body = Bytes::from(vec![7; load.size]);
    phases(load, async |gate| {
        let slots = callers
            .iter()
            .flat_map(|caller| std::iter::repeat_n(caller, load.in_flight))
            .map(|caller| slot(caller.clone(), body.clone(), gate.clone()));
        if load.mode == Mode::Callback {
            let tasks: FuturesUnordered<_> = slots.map(tokio::spawn).collect();
            let outcomes: Vec<_> = tasks
                .try_collect()
                .await
                .map_err(|error| lost(&error.to_string()))?;
            outcomes.into_iter().collect()
        } else {
            slots.collect::<FuturesUnordered<_>>().try_collect().await
        }
    })
    .await
}

/// Opens a gate for the warm-up and one for the window, and runs `phase` through each.
pub async fn phases(
    load: &Load,
    mut phase: impl AsyncFnMut(Arc<Gate>) -> Outcome<()>,
) -> Outcome<Tally> {
    if !load.warmup.is_zero() {
        phase(Arc::new(Gate::open(Bound::Time(load.warmup)))).await?;
    }
    let gate = Arc::new(Gate::open(load.bound));
    phase(gate.clone()).await?;
    Ok(gate.lock().tally.clone())
}

/// Keeps one call in flight until the gate closes.
async fn slot<C: Caller>(mut caller: C, body: Bytes, gate: Arc<Gate>) -> Outcome<()> {
    let mut sent_ns = gate.first();
    while let Some(start_ns) = sent_ns {
        let size = caller
            .call(body.clone())
            .await
            .map_err(|error| lost(&error))?;
        check_size(size, body.len())?;
        sent_ns = gate.next(start_ns);
    }
    Ok(())
}

/// Refuses a reply of another length than its request.
pub fn check_size(size: usize, expected: usize) -> Outcome<()> {
    if size == expected {
        return Ok(());
    }
    Err(lost(&format!(
        "a reply has {size} bytes instead of {expected}"
    )))
}

/// Lets requests through until the bound, and counts replies.
pub struct Gate(Mutex<Counts>);

struct Counts {
    tally: Tally,
    end_ns: u64,
    quota: u64,
}

impl Gate {
    /// Starts the clocks.
    fn open(bound: Bound) -> Gate {
        let tally = Tally::start();
        let (end_ns, quota) = match bound {
            Bound::Time(window) => (tally.start_ns() + window.as_nanos() as u64, u64::MAX),
            Bound::Requests(total) => (u64::MAX, total),
        };
        Gate(Mutex::new(Counts {
            tally,
            end_ns,
            quota,
        }))
    }

    /// Lets the first request of a slot through: the time it is sent, if it may be.
    pub fn first(&self) -> Option<u64> {
        self.lock().admit(monotonic_ns())
    }

    /// Counts the reply to a request sent at `sent_ns` and lets the next one through.
    pub fn next(&self, sent_ns: u64) -> Option<u64> {
        let now_ns = monotonic_ns();
        let mut counts = self.lock();
        counts.tally.latency.record(now_ns - sent_ns);
        let admitted = counts.admit(now_ns);
        if admitted.is_none() {
            counts.tally.end(now_ns);
        }
        admitted
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn admit(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns >= self.end_ns || self.quota == 0 {
            return None;
        }
        self.quota -= 1;
        Some(now_ns)
    }
}

/// A call that got no proper reply.
pub fn lost(why: &str) -> Failure {
    Failure::run(
        format!("a call failed: {why}"),
        "does a server of the same program listen there, and is it alive?",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// Answers with as many bytes as it got, or one fewer, and counts who is inside.
    #[derive(Clone, Default)]
    struct Fake {
        inside: Arc<AtomicUsize>,
        most_inside: Arc<AtomicUsize>,
        cuts: bool,
        fails: bool,
    }

    impl Caller for Fake {
        async fn call(&mut self, body: Bytes) -> Result<usize, String> {
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_inside.fetch_max(inside, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            if self.fails {
                Err("refused".into())
            } else {
                Ok(body.len() - usize::from(self.cuts))
            }
        }
    }

    fn load(mode: Mode, in_flight: usize, bound: Bound) -> Load {
        Load {
            connect: "127.0.0.1:1".parse().unwrap(),
            mode,
            in_flight,
            size: 16,
            bound,
            warmup: Duration::ZERO,
            connections: 1,
        }
    }

    fn run(load: &Load, fake: &Fake) -> Outcome<Tally> {
        crate::runtime()
            .unwrap()
            .block_on(drive(load, std::slice::from_ref(fake)))
    }

    #[test]
    fn exactly_the_requests_asked_for_are_sent_with_the_window_full() {
        for (mode, in_flight) in [
            (Mode::Serial, 1),
            (Mode::Concurrent, 7),
            (Mode::Callback, 7),
        ] {
            let fake = Fake::default();
            let tally = run(&load(mode, in_flight, Bound::Requests(100)), &fake).unwrap();
            assert_eq!(tally.latency.count(), 100);
            assert_eq!(fake.most_inside.load(Ordering::SeqCst), in_flight);
            assert!(tally.window_ns() >= tally.latency.max());
        }
    }

    #[test]
    fn a_window_of_time_is_closed_by_its_last_reply() {
        let window = Duration::from_millis(20);
        let tally = run(
            &load(Mode::Concurrent, 3, Bound::Time(window)),
            &Fake::default(),
        )
        .unwrap();
        assert!(tally.window_ns() >= 20_000_000 && tally.latency.count() > 3);
    }

    #[test]
    fn a_cut_reply_and_a_failed_call_fail_the_run() {
        for mode in [Mode::Concurrent, Mode::Callback] {
            let load = load(mode, 3, Bound::Requests(10));
            let cuts = Fake {
                cuts: true,
                ..Fake::default()
            };
            let message = run(&load, &cuts).map(drop).unwrap_err().to_string();
            assert!(message.contains("15 bytes instead of 16"), "{message}");
            let fails = Fake {
                fails: true,
                ..Fake::default()
            };
            let message = run(&load, &fails).map(drop).unwrap_err().to_string();
            assert!(message.contains("refused"), "{message}");
        }
    }
}
