//! What a phase has shown: its latencies and the span of time and processor time it took.

use super::{Histogram, monotonic_ns, process_cpu_ns};

/// One thread's part of a phase, or all parts joined.
#[derive(Clone)]
pub struct Tally {
    /// One value per completed request.
    pub latency: Histogram,
    start_ns: u64,
    start_cpu_ns: u64,
    end_ns: u64,
    end_cpu_ns: u64,
}

impl Tally {
    /// Starts the clocks; nothing has been sent yet.
    pub fn start() -> Tally {
        let latency = Histogram::default();
        let (start_ns, start_cpu_ns) = (monotonic_ns(), process_cpu_ns());
        Tally {
            latency,
            start_ns,
            start_cpu_ns,
            end_ns: start_ns,
            end_cpu_ns: start_cpu_ns,
        }
    }

    /// Ends the span at `now_ns`, when the last reply came.
    pub fn end(&mut self, now_ns: u64) {
        self.end_ns = now_ns;
        self.end_cpu_ns = process_cpu_ns();
    }

    /// The span from the earliest start to the latest end, with all latencies.
    pub fn join(mut self, other: &Tally) -> Tally {
        self.latency.merge(&other.latency);
        self.start_ns = self.start_ns.min(other.start_ns);
        self.start_cpu_ns = self.start_cpu_ns.min(other.start_cpu_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.end_cpu_ns = self.end_cpu_ns.max(other.end_cpu_ns);
        self
    }

    /// When the span started, on the monotonic clock.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Nanoseconds from the start to the end.
    pub fn window_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Processor time of the process from the start to the end.
    pub fn cpu_ns(&self) -> u64 {
        self.end_cpu_ns - self.start_cpu_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_parts_span_from_the_first_start_to_the_last_end() {
        let tally = |start_ns, end_ns| Tally {
            latency: Histogram::default(),
            start_ns,
            start_cpu_ns: start_ns / 2,
            end_ns,
            end_cpu_ns: end_ns / 2,
        };
        let mut late = tally(20, 40);
        late.latency.record(7);
        let joined = tally(10, 30).join(&late);
        assert_eq!(
            (joined.window_ns(), joined.cpu_ns(), joined.latency.count()),
            (30, 15, 1)
        );
    }
}
