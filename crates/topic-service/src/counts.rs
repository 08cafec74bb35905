//! Counters of topics, for metrics.
//!
//! Requests and errors are counted by number; the protocol defines what the numbers mean. Numbers
//! above the highest share one counter.

use std::sync::atomic::{AtomicU64, Ordering};

use platform::{Durations, Stripes};

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Bytes received by listeners.
    Received,
    /// Bytes sent by listeners.
    Sent,
    /// Fetches that had to wait for records.
    FetchWaits,
    /// Record batches appended.
    Batches,
    /// Records in the appended batches, according to their headers.
    Records,
    /// Bytes of the appended batches.
    BatchBytes,
    /// Compactions that failed.
    CompactionFailures,
    /// Batches that a compaction could not read and left unchanged.
    UnreadableBatches,
}

const COUNTS: usize = Count::UnreadableBatches as usize + 1;
const REQUESTS: usize = 128;
const ERRORS: usize = 256;

/// Counters of topics; see the module docs.
#[derive(Debug)]
pub struct Counts {
    /// The counters, then those of requests.
    stripes: Stripes<{ COUNTS + REQUESTS }>,
    errors: [AtomicU64; ERRORS],
    durations: [Durations; REQUESTS],
}

/// Totals of one round of appends.
#[derive(Debug, Default)]
pub(super) struct Appends {
    batches: u64,
    records: u64,
    bytes: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            stripes: Stripes::default(),
            errors: [const { AtomicU64::new(0) }; ERRORS],
            durations: std::array::from_fn(|_| Durations::default()),
        }
    }
}

impl Counts {
    /// Returns the current value.
    pub fn get(&self, count: Count) -> u64 {
        self.stripes.get(count as usize)
    }

    /// Adds `more` to a counter.
    pub fn add(&self, count: Count, more: u64) {
        self.stripes.add(count as usize, more);
    }

    /// Counts a request of this number.
    pub fn add_request(&self, number: usize) {
        self.stripes.add(COUNTS + number.min(REQUESTS - 1), 1);
    }

    /// Returns the count of requests of this number.
    pub fn requests(&self, number: usize) -> u64 {
        self.stripes.get(COUNTS + number.min(REQUESTS - 1))
    }

    /// Returns the durations of requests of this number.
    pub fn durations(&self, number: usize) -> &Durations {
        &self.durations[number.min(REQUESTS - 1)]
    }

    /// Counts an error of this number.
    pub fn add_error(&self, number: usize) {
        self.errors[number.min(ERRORS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the count of errors of this number.
    pub fn errors(&self, number: usize) -> u64 {
        self.errors[number.min(ERRORS - 1)].load(Ordering::Relaxed)
    }

    pub(super) fn add_appends(&self, appends: &Appends) {
        for (count, more) in [
            (Count::Batches, appends.batches),
            (Count::Records, appends.records),
            (Count::BatchBytes, appends.bytes),
        ] {
            if more > 0 {
                self.add(count, more);
            }
        }
    }
}

impl Appends {
    /// Counts an appended batch.
    pub(super) fn add(&mut self, records: i32, bytes: usize) {
        self.batches += 1;
        self.records += u64::try_from(records).unwrap_or(0);
        self.bytes += bytes as u64;
    }
}
