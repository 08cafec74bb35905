//! What is counted of topics, for whoever watches the node.
//!
//! Requests and errors are counted by numbers whose meaning is the door's to know; above the highest
//! they are counted together.

use std::sync::atomic::{AtomicU64, Ordering};

/// One of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Bytes that a door has received.
    Received,
    /// Bytes that a door has sent.
    Sent,
    /// Fetches that had to wait for records.
    FetchWaits,
    /// Record batches that were appended.
    Batches,
    /// Records in them, as their headers say.
    Records,
    /// Bytes of them.
    BatchBytes,
    /// Compactions that were given up.
    CompactionFailures,
    /// Batches that a compaction could not read and kept as they are.
    UnreadableBatches,
}

const COUNTS: usize = Count::UnreadableBatches as usize + 1;
const REQUESTS: usize = 128;
const ERRORS: usize = 256;

/// See the module's documentation.
#[derive(Debug)]
pub struct Counts {
    values: [AtomicU64; COUNTS],
    requests: [AtomicU64; REQUESTS],
    errors: [AtomicU64; ERRORS],
}

/// What one round of appends has come to.
#[derive(Debug, Default)]
pub(super) struct Appends {
    batches: u64,
    records: u64,
    bytes: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            values: [const { AtomicU64::new(0) }; COUNTS],
            requests: [const { AtomicU64::new(0) }; REQUESTS],
            errors: [const { AtomicU64::new(0) }; ERRORS],
        }
    }
}

impl Counts {
    /// The value now.
    pub fn get(&self, count: Count) -> u64 {
        self.values[count as usize].load(Ordering::Relaxed)
    }

    /// Adds some.
    pub fn add(&self, count: Count, more: u64) {
        self.values[count as usize].fetch_add(more, Ordering::Relaxed);
    }

    /// Adds a request of that number.
    pub fn add_request(&self, number: usize) {
        self.requests[number.min(REQUESTS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// Requests of that number.
    pub fn requests(&self, number: usize) -> u64 {
        self.requests[number.min(REQUESTS - 1)].load(Ordering::Relaxed)
    }

    /// Adds an error of that number.
    pub fn add_error(&self, number: usize) {
        self.errors[number.min(ERRORS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// Errors of that number.
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
    /// A batch was appended.
    pub(super) fn add(&mut self, records: i32, bytes: usize) {
        self.batches += 1;
        self.records += u64::try_from(records).unwrap_or(0);
        self.bytes += bytes as u64;
    }
}
