//! Passes accepted connections to the runtimes that serve them.

use net::{SocketPermit, Stream};

/// Serves connections: on one of several runtimes, or on the current one.
pub trait Spawn: Send + Sync {
    /// Serves an accepted connection; its socket becomes a stream on the runtime that serves it.
    fn spawn(&self, accepted: Acceptor);
}

/// Makes a stream of an accepted socket, on the runtime that will serve it.
pub type Acceptor = Box<dyn FnOnce() -> std::io::Result<Stream> + Send>;

/// Passes an accepted socket to `spawn`, which makes it a stream by `split`.
pub fn spawn_with<S: Send + 'static>(
    spawn: &dyn Spawn,
    socket: std::io::Result<S>,
    permit: SocketPermit,
    split: impl FnOnce(S) -> std::io::Result<Stream> + Send + 'static,
) {
    match socket {
        Ok(socket) => spawn.spawn(Box::new(move || Ok(split(socket)?.with_permit(permit)))),
        Err(error) => tracing::warn!(%error, "cannot serve a connection"),
    }
}
