//! The disk of a member, whose steps take time and may fail. A failure ends the process.

use std::sync::Arc;
use std::time::Duration;

use journal::disk::SimulatedDisk;
use journal::disk::simulated::{Fault, Kind};
use journal::filing::Step;
use journal::{Background, Line, LineStep};
use parking_lot::Mutex;
use platform::Clock;

/// Longest time of a sync of a good disk.
pub(super) const SYNC: Duration = Duration::from_millis(2);

/// Shortest time of a sync, in microseconds.
const SYNC_US_MIN: u64 = 100;

/// Room that a disk still has when it is nearly full, in bytes: less than a segment.
const ROOM: u64 = 16 << 10;

/// The speed and the health of a disk during a run of its member. A clone is the same.
#[derive(Clone)]
pub(super) struct DiskState(Arc<Mutex<State>>);

struct State {
    /// Longest time of a sync.
    sync: Duration,
    /// No call returns any more.
    is_hanging: bool,
    /// Reason for which the process of the member ends.
    failure: Option<String>,
}

impl DiskState {
    /// Creates the state of a good disk.
    pub(super) fn new() -> DiskState {
        DiskState(Arc::new(Mutex::new(State {
            sync: SYNC,
            is_hanging: false,
            failure: None,
        })))
    }

    /// Sets the longest time of a sync.
    pub(super) fn set_sync(&self, longest: Duration) {
        self.0.lock().sync = longest;
    }

    /// Sets whether calls no longer return.
    pub(super) fn set_hanging(&self, is_hanging: bool) {
        self.0.lock().is_hanging = is_hanging;
    }

    /// Notes that the process of the member ends.
    pub(super) fn fail(&self, reason: String) {
        self.0.lock().failure = Some(reason);
    }

    /// Returns the reason for which the process of the member ends, if it does.
    pub(super) fn failure(&self) -> Option<String> {
        self.0.lock().failure.clone()
    }

    /// Writes, syncs and files, each after some time, until a call fails.
    pub(super) async fn step(
        self,
        mut line: Line,
        mut background: Background,
        clock: Arc<dyn Clock>,
        mut dice: fastrand::Rng,
    ) {
        loop {
            let longest = self.0.lock().sync.as_micros() as u64;
            tokio::time::sleep(Duration::from_micros(dice.u64(SYNC_US_MIN..=longest))).await;
            if self.0.lock().is_hanging {
                continue;
            }
            if line.step() == LineStep::Failed {
                return self.fail("the journal has failed".to_owned());
            }
            if background.step(clock.unix_ms()) == Step::Failed {
                return self.fail("the filing has failed".to_owned());
            }
        }
    }
}

/// Lets the next sync of a disk fail.
pub(super) fn fail_sync(disk: &SimulatedDisk) {
    disk.fail_once(Fault::Broken, |call| call.kind == Kind::SyncData);
}

/// Fills a disk.
pub(super) fn fill(disk: &SimulatedDisk) {
    disk.set_capacity(disk.used() + ROOM);
}

/// Ends all faults of a disk.
pub(super) fn repair(disk: &SimulatedDisk) {
    disk.heal();
    disk.set_capacity(u64::MAX);
}
