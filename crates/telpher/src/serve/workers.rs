//! The threads that serve native connections.
//!
//! Each has a runtime of its own and keeps the connections it was given: what a connection reads
//! is handled, and mostly answered, on the thread that read it, and nothing is stolen or moved.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use edge::Together;
use edge::native::{Acceptor, Door, Spawn};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::memory;

/// The threads; they end when this is dropped.
pub(super) struct Workers {
    workers: Vec<Worker>,
    door: Door,
}

struct Worker {
    handle: Handle,
    connections: Arc<AtomicUsize>,
    /// Held so that the thread ends with us.
    _stop: oneshot::Sender<()>,
}

/// A runtime for one thread.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

impl Workers {
    /// Starts `count` threads, 0 for one per processor.
    pub(super) fn start(count: u32, door: Door) -> io::Result<Self> {
        let count = match count {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count as usize,
        };
        let workers = (0..count).map(start_worker).collect::<io::Result<_>>()?;
        Ok(Self { workers, door })
    }
}

fn start_worker(index: usize) -> io::Result<Worker> {
    let runtime = runtime()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    std::thread::Builder::new()
        .name(format!("worker-{index}"))
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    // The sender is only ever dropped: either way it is time to end.
                    _ = stopped => {}
                    () = memory::tidy() => {}
                    () = Together::new() => {}
                }
            });
            runtime.shutdown_background();
        })?;
    Ok(Worker {
        handle,
        connections: Arc::default(),
        _stop: stop,
    })
}

impl Spawn for Workers {
    /// Gives the connection to the thread that has the fewest.
    fn spawn(&self, accepted: Acceptor) {
        let load = |worker: &&Worker| worker.connections.load(Ordering::Relaxed);
        let Some(worker) = self.workers.iter().min_by_key(load) else {
            return;
        };
        let place = Place::take(&worker.connections);
        let door = self.door.clone();
        worker.handle.spawn(async move {
            let _place = place;
            match accepted() {
                Ok(stream) => door.serve(stream).await,
                Err(error) => tracing::debug!(%error, "a connection ended before it began"),
            }
        });
    }
}

/// Counts a connection for as long as it lasts.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
