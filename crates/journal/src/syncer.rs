//! Syncs of the line that another thread does, so that the line can write the next blocks meanwhile.
//!
//! Only long syncs are worth the two switches between threads. One is under way at a time, and it is
//! never repeated.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::disk::File;

/// Syncs files for the line.
pub(crate) trait Syncer: fmt::Debug + Send {
    /// Begins to sync a file. It makes durable what was written before this call.
    fn begin(&mut self, file: Arc<dyn File>);

    /// Waits until the sync that was begun last has ended, for at most `limit`. Returns its result, once;
    /// `None` if it has not ended.
    fn wait(&mut self, limit: Duration) -> Option<io::Result<()>>;

    /// Returns the number of blocks to write before the next sync at most. The others are written during
    /// it.
    fn batch_max(&mut self) -> usize {
        usize::MAX
    }
}

/// A thread that syncs files.
#[derive(Debug)]
pub(crate) struct SyncThread {
    files: Option<Sender<Arc<dyn File>>>,
    results: Receiver<io::Result<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SyncThread {
    pub(crate) fn start() -> io::Result<SyncThread> {
        let (files, begun) = channel::<Arc<dyn File>>();
        let (ended, results) = channel();
        let run = move || {
            for file in begun {
                if ended.send(file.sync_data()).is_err() {
                    return;
                }
            }
        };
        let named = thread::Builder::new().name("telpher-sync".into());
        Ok(SyncThread {
            files: Some(files),
            results,
            thread: Some(named.spawn(run)?),
        })
    }
}

impl Syncer for SyncThread {
    fn begin(&mut self, file: Arc<dyn File>) {
        // If the thread has panicked, `wait` says so.
        let _ = self.files.as_ref().map(|files| files.send(file));
    }

    fn wait(&mut self, limit: Duration) -> Option<io::Result<()>> {
        match self.results.recv_timeout(limit) {
            Ok(synced) => Some(synced),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Err(io::Error::other("the sync thread panicked")))
            }
        }
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.files = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Syncs in a simulation: each takes effect when it begins or when it ends.
#[cfg(any(test, feature = "simulation"))]
pub(crate) struct SimulatedSyncer<C> {
    /// Chooses a number below its argument.
    choose: C,
    file: Option<Arc<dyn File>>,
    synced: Option<io::Result<()>>,
    /// Calls of `wait` until the sync ends.
    waits: usize,
}

#[cfg(any(test, feature = "simulation"))]
impl<C: FnMut(usize) -> usize> SimulatedSyncer<C> {
    pub(crate) fn new(choose: C) -> SimulatedSyncer<C> {
        SimulatedSyncer {
            choose,
            file: None,
            synced: None,
            waits: 0,
        }
    }
}

#[cfg(any(test, feature = "simulation"))]
impl<C: FnMut(usize) -> usize + Send> Syncer for SimulatedSyncer<C> {
    fn begin(&mut self, file: Arc<dyn File>) {
        self.waits = (self.choose)(4);
        match (self.choose)(2) {
            0 => self.file = Some(file),
            _ => self.synced = Some(file.sync_data()),
        }
    }

    fn wait(&mut self, _: Duration) -> Option<io::Result<()>> {
        match self.waits.checked_sub(1) {
            Some(left) => {
                self.waits = left;
                None
            }
            None => {
                let ends = self.file.take().map(|file| file.sync_data());
                ends.or_else(|| self.synced.take())
            }
        }
    }

    fn batch_max(&mut self) -> usize {
        1 + (self.choose)(2)
    }
}

#[cfg(any(test, feature = "simulation"))]
impl<C> fmt::Debug for SimulatedSyncer<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("SimulatedSyncer");
        shown.field("waits", &self.waits).finish_non_exhaustive()
    }
}
