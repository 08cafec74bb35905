//! Detection of the moment when a load opened its window, which the load does not announce.
//!
//! A load warms up, opens its window, and reports the window's length at its end. Around the
//! expected end of the warm-up, measurements are started at short intervals, and the one that
//! started nearest to the opening is used. If none is near enough, there is no measurement: the
//! figures of another window would be wrong.

use std::time::Duration;

use crate::process::{Role, Watch};
use crate::workload::child::Actor;
use crate::workload::error::WorkloadError;
use meter::clock::{cpu_step_ns, now_ns};

/// Interval between two measurements; the nearest one is at most half of it away.
const PAUSE: Duration = Duration::from_millis(1);

/// Start and end of the measurements, relative to the expected opening.
const EARLY: Duration = Duration::from_millis(10);
const LATE: Duration = Duration::from_millis(120);

/// Maximum distance to the opening, as a fraction (1 / `PART_MAX`) of the window.
const PART_MAX: u64 = 50;

/// Candidate measurements, one of which started with the window.
pub(super) struct Opening {
    processes: Vec<(Role, u32)>,
    from_ns: u64,
    until_ns: u64,
    begun: Vec<Watch>,
}

impl Opening {
    /// Prepares measurements of `processes` for a load that starts now.
    pub(super) fn of(processes: Vec<(Role, u32)>, warm_up: Duration) -> Self {
        // The first call spins, which must not happen inside a window.
        cpu_step_ns();
        let expected_ns = now_ns() + warm_up.as_nanos() as u64;
        Self {
            processes,
            from_ns: expected_ns.saturating_sub(EARLY.as_nanos() as u64),
            until_ns: expected_ns + LATE.as_nanos() as u64,
            begun: Vec::new(),
        }
    }

    /// Watches until the load has printed its result, for at most `patience` after its opening.
    pub(super) fn watch(
        &mut self,
        load: &mut Actor,
        patience: Duration,
    ) -> Result<String, WorkloadError> {
        let early = Duration::from_nanos(self.from_ns.saturating_sub(now_ns()));
        let mut line = load.poll_line(early)?;
        while line.is_none() && now_ns() < self.until_ns {
            self.begun.push(Watch::start(&self.processes)?);
            line = load.poll_line(PAUSE)?;
        }
        match line {
            Some(line) => Ok(line),
            None => Ok(load.line_within(patience)?),
        }
    }

    /// Returns the measurement that started with the window, if there is one.
    pub(super) fn watch_of(self, opened_ns: u64, window_ns: u64) -> Option<Watch> {
        let distance = |watch: &Watch| watch.started_ns().abs_diff(opened_ns);
        let nearest = self.begun.into_iter().min_by_key(distance)?;
        (distance(&nearest) <= window_ns / PART_MAX).then_some(nearest)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::workload::child::Pin;

    const WARM_UP: Duration = Duration::from_millis(30);

    /// A load that prints `done` after this many milliseconds.
    fn load(millis: u32) -> Actor {
        let script = format!("sleep 0.{millis:03}; echo done; cat");
        Actor::start(Path::new("/bin/sh"), ["-c", &script], Pin::Nowhere).unwrap()
    }

    fn watch(millis: u32) -> (Opening, u64) {
        let us = vec![(Role::Responder, std::process::id())];
        let mut load = load(millis);
        let mut opening = Opening::of(us, WARM_UP);
        let line = opening.watch(&mut load, Duration::from_secs(30)).unwrap();
        assert_eq!(line, "done");
        (opening, now_ns())
    }

    #[test]
    fn the_measurement_that_starts_with_the_window_is_selected() {
        let (opening, ended_ns) = watch(400);
        let begun: Vec<u64> = opening.begun.iter().map(Watch::started_ns).collect();
        let opened_ns = begun[begun.len() / 2] + 1;
        let kept = opening.watch_of(opened_ns, ended_ns - opened_ns).unwrap();
        assert_eq!(kept.started_ns(), opened_ns - 1);
    }

    #[test]
    fn a_window_without_a_measurement_has_no_usage() {
        let (opening, ended_ns) = watch(60);
        // A load that takes no time has no window.
        let last = opening.begun.last().unwrap().started_ns();
        assert!(opening.watch_of(last + 1_000_000, 1_000).is_none());
        let (opening, _) = watch(60);
        assert!(
            opening
                .watch_of(ended_ns + 60_000_000_000, 1_000_000)
                .is_none()
        );
    }
}
