//! The disk of a node, whose steps take time and may fail.

use std::sync::Arc;
use std::time::Duration;

use journal::disk::SimulatedDisk;
use journal::disk::simulated::{Fault, Kind};
use journal::filing::Step;
use journal::{Background, Line, LineStep};
use parking_lot::Mutex;

/// Longest time of a sync on a good disk.
pub(crate) const SYNC: Duration = Duration::from_millis(2);

/// Room that a disk still has when it is nearly full, in bytes: less than a segment.
const ROOM: u64 = 16 << 10;

/// The speed and the health of a disk.
pub(crate) struct DiskState {
    /// Longest time of a sync.
    pub(crate) sync: Duration,
    /// No call returns any more.
    pub(crate) is_hanging: bool,
    /// A call has failed: the process of the node ends.
    pub(crate) has_failed: bool,
}

impl DiskState {
    pub(crate) fn new() -> Arc<Mutex<DiskState>> {
        Arc::new(Mutex::new(DiskState {
            sync: SYNC,
            is_hanging: false,
            has_failed: false,
        }))
    }
}

/// Writes, syncs and files, each after some time, until a call fails.
pub(crate) async fn step_disk(
    mut line: Line,
    mut background: Background,
    seed: u64,
    state: Arc<Mutex<DiskState>>,
    now_ms: impl Fn() -> u64,
) {
    let mut rng = fastrand::Rng::with_seed(seed);
    loop {
        let longest = state.lock().sync.as_micros() as u64;
        tokio::time::sleep(Duration::from_micros(rng.u64(100..=longest.max(100)))).await;
        if state.lock().is_hanging {
            continue;
        }
        if line.step() == LineStep::Failed {
            state.lock().has_failed = true;
            return;
        }
        // A failure ends the filing only.
        if rng.u8(..4) == 0 && background.step(now_ms()) == Step::Failed {
            state.lock().has_failed = true;
            return;
        }
    }
}

/// Lets the next sync of a disk fail.
pub(crate) fn fail_sync(disk: &SimulatedDisk) {
    disk.fail_once(Fault::Broken, |call| call.kind == Kind::SyncData);
}

/// Fills a disk.
pub(crate) fn fill(disk: &SimulatedDisk) {
    disk.set_capacity(disk.used() + ROOM);
}

/// Ends all faults of a disk.
pub(crate) fn repair(disk: &SimulatedDisk) {
    disk.heal();
    disk.set_capacity(u64::MAX);
}
