//! The threads that serve connections of all protocols.
//!
//! Each thread has its own runtime and keeps its connections: a request is handled, and mostly
//! answered, on the thread that has read it. There is no work stealing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use door::{Acceptor, PassEnd, Spawn, WakeBatch};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::memory;

/// The worker threads, which end on drop.
pub(super) struct Workers(Vec<Worker>);

struct Worker {
    handle: Handle,
    connections: Arc<AtomicUsize>,
    /// Ends the thread when it is dropped.
    _stop: oneshot::Sender<()>,
}

/// Creates a runtime for one thread.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

impl Workers {
    /// Starts `count` threads; 0 is one per processor.
    pub(super) fn start(count: u32) -> io::Result<Self> {
        let count = match count {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count as usize,
        };
        let workers = (0..count).map(start_worker).collect::<io::Result<_>>()?;
        Ok(Self(workers))
    }

    /// Makes a stream of an accepted socket and serves it on the thread with the fewest connections.
    fn serve<T, F>(
        &self,
        accepted: Box<dyn FnOnce() -> io::Result<T> + Send>,
        serve: impl FnOnce(T) -> F + Send + 'static,
    ) where
        T: Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let serving = async move {
            match accepted() {
                Ok(stream) => serve(stream).await,
                Err(error) => tracing::debug!(%error, "cannot set up an accepted connection"),
            }
        };
        self.spawn(serving);
    }

    /// Runs the future of a connection on the thread with the fewest connections.
    fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let load = |worker: &&Worker| worker.connections.load(Ordering::Relaxed);
        let worker = self.0.iter().min_by_key(load)?;
        let count = ConnectionCount::increment(&worker.connections);
        let task = worker.handle.spawn(async move {
            let _count = count;
            serving.await;
        });
        Some(task.abort_handle())
    }

    /// Returns the function that runs HTTP connections on these threads.
    pub(super) fn http(self: &Arc<Self>) -> door_http::Spawn {
        let workers = self.clone();
        Arc::new(move |serving| workers.spawn(serving))
    }

    /// Serves a Kafka connection.
    pub(super) fn serve_kafka(&self, door: &door_kafka::Door, accepted: door_kafka::Acceptor) {
        let door = door.clone();
        self.serve(accepted, async move |arrived| door.serve(arrived).await);
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
                // A task of its own: unlike this future, the thread wakes it without a system call.
                tokio::spawn(PassEnd::new());
                tokio::select! {
                    // The sender is dropped when the workers end.
                    _ = stopped => {}
                    () = memory::tidy() => {}
                    () = WakeBatch::new() => {}
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

/// Serves native connections on the worker threads.
pub(super) struct Native {
    pub(super) workers: Arc<Workers>,
    pub(super) door: door_native::Door,
}

impl Spawn for Native {
    fn spawn(&self, accepted: Acceptor) {
        let door = self.door.clone();
        let serve = async move |stream| door.serve(stream).await;
        self.workers.serve(accepted, serve);
    }
}

/// Serves SLIM connections on the worker threads.
pub(super) struct Slim {
    pub(super) workers: Arc<Workers>,
    pub(super) door: door_slim::Door,
}

impl Spawn for Slim {
    fn spawn(&self, accepted: Acceptor) {
        let door = self.door.clone();
        let serve = async move |stream| door.serve(stream).await;
        self.workers.serve(accepted, serve);
    }
}

/// Counts a connection of a worker until it is dropped.
struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    fn increment(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
