//! Memory of a process over a run.

use bench::measurement::MemoryPoint;
use bench::process::Memory;
use meter::clock::now_ns;

/// Maximum number of points of one run; a longer run has them further apart.
const POINTS_MAX: usize = 600;

/// Recorder of a process's memory over time.
pub(super) struct MemoryRecorder {
    pid: u32,
    started_ns: u64,
    points: Vec<MemoryPoint>,
    /// Number of calls per recorded point.
    stride: usize,
    calls: usize,
}

impl MemoryRecorder {
    /// Records a first point of a process's memory.
    pub(super) fn of(pid: u32) -> Self {
        let mut recorder = Self {
            pid,
            started_ns: now_ns(),
            points: Vec::new(),
            stride: 1,
            calls: 0,
        };
        recorder.sample();
        recorder
    }

    /// Records a point; call it at regular intervals.
    pub(super) fn sample(&mut self) {
        let Some(memory) = Memory::of(self.pid) else {
            return;
        };
        let at_ms = (now_ns() - self.started_ns) / 1_000_000;
        self.record(MemoryPoint {
            at_ms,
            rss_bytes: memory.rss_bytes,
        });
    }

    fn record(&mut self, point: MemoryPoint) {
        if self.calls.is_multiple_of(self.stride) {
            self.points.push(point);
        }
        self.calls += 1;
        if self.points.len() >= POINTS_MAX {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Returns the recorded points.
    pub(super) fn points(self) -> Vec<MemoryPoint> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_fewer_points_in_order() {
        let mut course = MemoryRecorder::of(std::process::id());
        assert!(course.points[0].rss_bytes > 0);
        for at_ms in 1..10_000 {
            course.record(MemoryPoint {
                at_ms,
                rss_bytes: at_ms,
            });
        }
        let points = course.points();
        assert!((POINTS_MAX / 2..POINTS_MAX).contains(&points.len()));
        let gaps: Vec<u64> = points[1..]
            .windows(2)
            .map(|two| two[1].at_ms - two[0].at_ms)
            .collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
        assert!(points.last().unwrap().at_ms > 9_900);
    }
}
