//! The last hour of a node in numbers: one sample every five seconds, in memory of fixed size.
//!
//! A page that is opened after an incident shows it, without another program that collects metrics.
//! The shell calls [`Node::record_sample`] every [`History::INTERVAL`]. The oldest sample makes room
//! for the newest; nothing is stored, so a restart begins an empty history.

mod latency;
mod sample;

use std::time::Duration;

use model::ErrorCode;
use parking_lot::Mutex;

use self::latency::LatencyCounts;
use self::sample::Reading;
use crate::node::Node;

pub use self::sample::{ProcessReading, Sample, Series};

/// The last hour of a node.
#[derive(Debug, Default)]
pub struct History {
    samples: Mutex<Samples>,
    http_latencies: LatencyCounts,
}

/// A ring of samples, allocated with the first one.
#[derive(Debug, Default)]
struct Samples {
    ring: Vec<Sample>,
    /// Index of the oldest sample in a full ring.
    oldest: usize,
    /// The counters at the last sample.
    previous: Option<Reading>,
}

impl History {
    /// Time between two samples.
    pub const INTERVAL: Duration = Duration::from_secs(5);

    /// Maximum number of samples: those of one hour.
    pub const SAMPLES_MAX: usize = 720;

    /// Counts the duration of an HTTP request.
    pub fn observe_http(&self, took: Duration) {
        self.http_latencies.count(took);
    }

    /// Returns the newest samples, at most `count`, the oldest first.
    pub fn newest(&self, count: usize) -> Vec<Sample> {
        let samples = self.samples.lock();
        let (new, old) = samples.ring.split_at(samples.oldest);
        let skipped = samples.ring.len().saturating_sub(count);
        old.iter().chain(new).skip(skipped).cloned().collect()
    }
}

impl Samples {
    fn push(&mut self, sample: Sample) {
        if self.ring.len() < History::SAMPLES_MAX {
            self.ring
                .reserve_exact(History::SAMPLES_MAX - self.ring.len());
            self.ring.push(sample);
        } else {
            self.ring[self.oldest] = sample;
            self.oldest = (self.oldest + 1) % History::SAMPLES_MAX;
        }
    }
}

impl Node {
    /// Adds a sample to the history: the changes since the previous call, which the first call
    /// begins. `process` is what the operating system reports of the process.
    pub fn record_sample(&self, process: ProcessReading) {
        let reading = Reading::take(self, process, self.history().http_latencies.get());
        let mut samples = self.history().samples.lock();
        let previous = samples.previous.take();
        let sample = previous.and_then(|previous| Sample::between(&previous, &reading));
        if let Some(sample) = sample {
            samples.push(sample);
        }
        samples.previous = Some(reading);
    }
}

/// Number of error codes, with the place 0 that none has.
const CODES: usize = ErrorCode::ALL.len() + 1;

#[cfg(test)]
mod tests;
