//! A journal on a simulated disk, whose line is a task.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use journal::disk::SimulatedDisk;
use journal::filing::Step;
use journal::{Background, Commit, Journal, Line, LineStep, Options, ShardId};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::raft::ShardLog;

pub(super) const SHARD: ShardId = ShardId(0);

/// Runs a test on one thread, with a clock that jumps to the next event.
pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(test)
}

/// An open journal.
pub(super) struct Running {
    disk: Arc<SimulatedDisk>,
    log: Arc<ShardLog>,
    threads: Arc<Mutex<(Line, Background)>>,
    line: JoinHandle<()>,
}

impl Running {
    /// Opens the journal on a disk.
    pub(super) fn open(disk: &Arc<SimulatedDisk>, entropy: u64) -> Running {
        Running::open_with(disk, entropy, 16 << 10)
    }

    pub(super) fn open_with(disk: &Arc<SimulatedDisk>, entropy: u64, segment_size: u64) -> Running {
        let options = Options {
            journal_id: 9,
            entropy,
            shard_count: 1,
            segment_size,
            reserve_size: 0,
            commit: Commit::ByCaller,
            ..Options::default()
        };
        let opened = Journal::open_stepped(disk.clone(), &options).unwrap();
        let log = ShardLog::open(Arc::new(opened.journal), SHARD, || 1000).unwrap();
        let threads = Arc::new(Mutex::new((opened.line, opened.background)));
        let stepped = threads.clone();
        let line = tokio::spawn(async move {
            loop {
                while stepped.lock().0.step() == LineStep::Worked {}
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        });
        Running {
            disk: disk.clone(),
            log,
            threads,
            line,
        }
    }

    pub(super) fn log(&self) -> Arc<ShardLog> {
        self.log.clone()
    }

    /// Writes everything that is queued, and files what is committed.
    pub(super) fn settle(&mut self) {
        let (line, background) = &mut *self.threads.lock();
        for now_ms in 0..50 {
            while line.step() == LineStep::Worked {}
            while background.step(1000 * now_ms) == Step::Worked {}
        }
    }

    /// Ends the process, and opens the journal again.
    pub(super) fn reopen(self, entropy: u64) -> Running {
        let disk = self.disk.clone();
        disk.kill();
        drop(self);
        Running::open(&disk, entropy)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.line.abort();
    }
}
