//! The threads that drive the line and the filing. Each is a loop that calls `step` and sleeps when
//! there is nothing to do.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::background::Background;
use crate::filing::Step;
use crate::line::{Line, LineStep};
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::syncer::SyncThread;

/// Idle time before the hint is written. A busy line carries the hint in its blocks.
const HINT_DELAY: Duration = Duration::from_millis(1);

/// Idle time before memory is freed.
const IDLE_DELAY: Duration = Duration::from_secs(5);

/// Number of records of a step after which the line gives way: many are appended at the same time.
const GIVE_WAY_RECORDS: u64 = 4;

/// Longest time that the line may be without the CPU after it gave way. Longer means that a thread runs
/// that does not append.
const GIVE_WAY_LIMIT: Duration = Duration::from_millis(2);

/// Range of the number of steps without giving way after it took too long.
const GIVE_WAY_PAUSE: RangeInclusive<u32> = 64..=16_384;

/// Interval of retries when the disk is full.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The line's and the filing's threads. Dropping it writes what is queued, then joins them.
#[derive(Debug)]
pub(crate) struct Threads {
    shared: Arc<Shared>,
    line: Option<JoinHandle<()>>,
    filing: Option<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start(
        shared: &Arc<Shared>,
        mut line: Line,
        background: Background,
        now_ms: impl Fn() -> u64 + Send + 'static,
    ) -> io::Result<Threads> {
        let mut threads = Threads {
            shared: shared.clone(),
            line: None,
            filing: None,
        };
        line.set_syncer(SyncThread::start()?);
        threads.line = Some(spawn(shared, "line", |shared| run_line(line, shared))?);
        let run = move |shared: &Shared| run_filing(background, shared, now_ms);
        threads.filing = Some(spawn(shared, "filing", run)?);
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.doorbell.signal();
        // A panic of the thread has latched the journal, so all waiters know.
        let _ = self.line.take().map(JoinHandle::join);
        self.shared.is_line_closed.store(true, Ordering::SeqCst);
        self.shared.filing_bell.signal();
        let _ = self.filing.take().map(JoinHandle::join);
    }
}

fn spawn(
    shared: &Arc<Shared>,
    name: &'static str,
    run: impl FnOnce(&Shared) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let latch = LatchOnPanic {
        shared: shared.clone(),
        name,
    };
    thread::Builder::new()
        .name(format!("telpher-{name}"))
        .spawn(move || run(&latch.shared))
}

fn run_line(mut line: Line, shared: &Shared) {
    let bell = &shared.doorbell;
    let mut yielding = Yielding::default();
    let mut records = shared.counters.records.load(Ordering::Relaxed);
    loop {
        let is_closing = shared.is_closing.load(Ordering::SeqCst);
        let step = line.step();
        let before = records;
        records = shared.counters.records.load(Ordering::Relaxed);
        if records - before >= GIVE_WAY_RECORDS {
            yielding.give_way();
        }
        match step {
            LineStep::Worked if line.owes_hint() && !is_closing => bell.sleep(Some(HINT_DELAY)),
            LineStep::Worked => {}
            LineStep::Failed => return,
            LineStep::Idle if is_closing => return,
            LineStep::Idle => {
                bell.sleep(Some(IDLE_DELAY));
                if !bell.has_rung() {
                    line.forget_tail();
                    bell.sleep(None);
                }
            }
            LineStep::Starved if is_closing => {
                // The filing frees a segment soon, if it still can.
                if shared.health.is_serving() {
                    bell.sleep(Some(IDLE_DELAY));
                }
                if !bell.has_rung() {
                    shared.fail("shut down while no segment was free".into());
                }
            }
            // No segment will be freed any more: fail, so that writers do not wait forever.
            LineStep::Starved if shared.health.is_filing_failed() => {
                shared.fail(shared.health.out_of_segments());
            }
            LineStep::Starved => bell.sleep(None),
        }
    }
}

/// Gives the CPU to threads that are ready to run, so that what they append shares the next sync. This
/// costs no time if a CPU is free.
#[derive(Default)]
struct Yielding {
    /// Number of steps until the next attempt.
    pause: u32,
    /// Length of the last pause; 0 if the last attempt was short.
    last_pause: u32,
}

impl Yielding {
    fn give_way(&mut self) {
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the time is that of the CPU, which no simulation owns"
        )]
        let now = Instant::now;
        let start = now();
        thread::yield_now();
        self.note(now().duration_since(start));
    }

    /// Pauses the attempts, each time for longer, after one that took too long.
    fn note(&mut self, took: Duration) {
        if took <= GIVE_WAY_LIMIT {
            self.last_pause = 0;
            return;
        }
        let (min, max) = GIVE_WAY_PAUSE.into_inner();
        self.last_pause = (2 * self.last_pause).clamp(min, max);
        self.pause = self.last_pause;
    }
}

fn run_filing(mut background: Background, shared: &Shared, now_ms: impl Fn() -> u64) {
    while !shared.is_line_closed.load(Ordering::SeqCst) {
        let now_ms = now_ms();
        match background.step(now_ms) {
            Step::Worked => {}
            Step::Failed => return,
            Step::Full => shared.filing_bell.sleep(Some(RETRY_DELAY)),
            Step::Idle => {
                let due_ms = background.due_ms(now_ms);
                let wait =
                    due_ms.map(|due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms)));
                shared.filing_bell.sleep(wait);
            }
        }
        shared.filing_bell.take_marked();
    }
}

/// Latches the journal if its thread panics, so that no writer waits forever.
struct LatchOnPanic {
    shared: Arc<Shared>,
    name: &'static str,
}

impl Drop for LatchOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shared
                .fail(format!("the {} thread panicked", self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_to_give_way_pause_for_longer_each_time_they_take_long() {
        let mut yielding = Yielding::default();
        let (min, max) = GIVE_WAY_PAUSE.into_inner();
        let mut expected = min;
        for _ in 0..12 {
            yielding.note(GIVE_WAY_LIMIT + Duration::from_nanos(1));
            assert_eq!(yielding.pause, expected);
            for _ in 0..expected {
                yielding.give_way();
            }
            assert_eq!(yielding.pause, 0);
            expected = (2 * expected).min(max);
        }
        yielding.note(GIVE_WAY_LIMIT);
        assert_eq!(yielding.pause, 0);
        yielding.note(2 * GIVE_WAY_LIMIT);
        assert_eq!(yielding.pause, min);
    }
}
