//! Steps of the wall clock while the node runs.
//!
//! The node's own clock never steps: buckets, holds and waits use it. Budgets follow the calendar
//! and therefore the wall clock, in both directions.

use crate::service::Quotas;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Smaller differences are ignored, in nanoseconds.
const STEP_NS_MIN: i64 = 1_000_000_000;

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// The size of the step.
    pub size: Duration,
    /// True if the clock was set back.
    pub is_back: bool,
}

impl Quotas<'_> {
    /// Compares the wall clock with the node's own clock. After a step of a second or more, budgets
    /// switch to the new time: a period that has not begun yet counts as the current one, and spent
    /// credit stays spent. Call this every few seconds.
    pub fn follow_clock(self) -> Option<ClockStep> {
        let state = self.state();
        let wall_ns = self.service.platform.unix_ms().saturating_mul(1_000_000);
        let now_ns = self.now_ns();
        let shift_ns = i64::try_from(i128::from(wall_ns) - i128::from(now_ns)).ok()?;
        let known_ns = state.calendar_shift_ns.load(Ordering::Relaxed);
        let step_ns = shift_ns.saturating_sub(known_ns);
        if step_ns.unsigned_abs() < STEP_NS_MIN.unsigned_abs() {
            return None;
        }
        let mut current = state.rules.write();
        let rules = current.with_calendar_shift(shift_ns);
        for shard in &state.shards {
            shard.lock().table.follow_calendar(&rules, now_ns);
        }
        *current = Arc::new(rules);
        drop(current);
        state.calendar_shift_ns.store(shift_ns, Ordering::Relaxed);
        state.counts.count_clock_step();
        self.wake_waiting();
        self.need_sweep();
        Some(ClockStep {
            size: Duration::from_nanos(step_ns.unsigned_abs()),
            is_back: step_ns < 0,
        })
    }
}
