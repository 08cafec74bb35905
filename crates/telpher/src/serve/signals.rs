//! How the node is told to end.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Exit, Failure};

/// SIGTERM and SIGINT.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on a signal no longer ends the process by itself.
    pub(super) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"))
            })
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Ends the process after `limit`, whatever it is doing then.
pub(super) fn end_process_after(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        tracing::error!("the shutdown takes longer than `shutdown.limit`: ending now");
        std::process::exit(Exit::Timeout as i32);
    });
}
