//! The journal over the simulated disk, step by step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::*;
use crate::disk::simulated::{Fate, Fault, Kind};
use crate::disk::{Disk, SimulatedDisk};

mod background;
mod cuts;
mod damage;
mod locating;
mod log;
mod log_limits;
mod log_votes;
mod many_streams;
mod overlapping;
mod reading;
mod tearing;
mod threaded;
mod write_amplification;
mod writing;

const SHARD: ShardId = ShardId(1);
const STREAM: StreamId = StreamId(7);
const ALL: ReadLimit = ReadLimit {
    records: usize::MAX,
    bytes: usize::MAX,
};

fn options(entropy: u64) -> Options {
    Options {
        journal_id: 0xC0FFEE,
        entropy,
        shard_count: 2,
        segment_size: 16 << 10,
        reserve_size: 0,
        ..Options::default()
    }
}

fn disk() -> Arc<SimulatedDisk> {
    Arc::new(SimulatedDisk::new(1))
}

fn open(disk: &Arc<SimulatedDisk>, entropy: u64) -> SteppedJournal {
    Journal::open_stepped(disk.clone(), &options(entropy)).unwrap()
}

impl SteppedJournal {
    fn append(&self, stream: StreamId, payload: &[u8]) -> Appended {
        let mut guard = self.journal.lock(SHARD, 1000);
        guard.append(stream, None, 3, payload).unwrap()
    }

    /// Appends a record, and makes it durable with its hint.
    fn append_durably(&mut self, stream: StreamId, payload: &[u8]) -> Appended {
        let appended = self.append(stream, payload);
        self.settle();
        let status = self.journal.status_at(Stage::Written, appended.ticket);
        assert_eq!(status, Status::Durable);
        appended
    }

    /// Steps until the line is idle.
    fn settle(&mut self) {
        loop {
            match self.line.step() {
                LineStep::Worked => {}
                LineStep::Starved => self.prepare_spare(),
                LineStep::Idle | LineStep::Failed => return,
            }
        }
    }

    fn read(&self, stream: StreamId) -> Vec<Vec<u8>> {
        let start = self
            .journal
            .stream(SHARD, stream)
            .map_or(0, |state| state.start);
        let read = self.journal.read(SHARD, stream, start, ALL).unwrap();
        for (place, record) in read.records.iter().enumerate() {
            assert_eq!(record.offset, start + place as u64);
        }
        read.records
            .iter()
            .map(|record| record.payload.to_vec())
            .collect()
    }

    fn prepare_spare(&self) {
        self.journal.shared().spares.prepare().unwrap();
    }
}

/// Counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn new() -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell::default());
        (bell.clone(), Waker::from(bell))
    }

    fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
