//! The parts of nodes in tests: a manual clock, counted randomness, a journal on a disk in memory,
//! and an executor that a test replaces.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use journal::disk::Disk;
use journal::{Background, Journal, Line};
use node::StorageParts;
use parking_lot::Mutex;
use platform::{Clock, Inline, Offload, Overloaded, Ports, Work};

use crate::Counting;

/// Returns ports with that clock, and numbers from `first` on instead of random ones.
pub fn ports(clock: Arc<dyn Clock>, first: u64) -> Ports {
    Ports {
        clock,
        entropy: Arc::new(Counting(AtomicU64::new(first))),
    }
}

/// Returns the options of a small journal. `starts` distinguishes the starts of a node.
pub fn journal_options(starts: u64) -> journal::Options {
    journal::Options {
        journal_id: 1,
        entropy: starts,
        segment_size: 1 << 20,
        reserve_size: 0,
        ..journal::Options::default()
    }
}

/// Opens a journal that is synced when the test says so. Returns it as the storage of a node, with
/// its writer and its compaction.
pub fn stepped_storage(
    disk: Arc<dyn Disk>,
    options: &journal::Options,
) -> (StorageParts, Line, Background) {
    let opened = Journal::open_stepped(disk, options).unwrap();
    let storage = StorageParts::new(Arc::new(opened.journal));
    (storage, opened.line, opened.background)
}

/// An executor that runs work inline until the test replaces it.
pub struct SwitchedOffload(Mutex<Arc<dyn Offload>>);

impl SwitchedOffload {
    /// Passes further work to another executor.
    pub fn switch_to(&self, offload: Arc<dyn Offload>) {
        *self.0.lock() = offload;
    }
}

impl Default for SwitchedOffload {
    fn default() -> Self {
        Self(Mutex::new(Arc::new(Inline)))
    }
}

impl Offload for SwitchedOffload {
    fn offload(&self, work: Work) -> Result<(), Overloaded> {
        let offload = self.0.lock().clone();
        offload.offload(work)
    }
}
