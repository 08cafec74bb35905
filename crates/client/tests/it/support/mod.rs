//! Shared test helpers.

mod handlers;
mod raw_peer;
mod transports;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) use handlers::{Gate, Guard, Probe, echo};
pub(crate) use raw_peer::{Bare, Frame, WINDOW, tag};
pub(crate) use transports::{Certificate, Node, name, over_every_transport, through_a_node};

/// Maximum duration of a test. On a paused clock it passes at once when all tasks are idle.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test with a time limit.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, test).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("the test did not end within {PATIENCE:?}"),
    }
}

/// Waits, on a paused clock, until all other tasks are idle.
pub(crate) async fn wait_until_idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Returns an in-process address that no other test uses.
pub(crate) fn inproc() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("inproc://it-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Listens at an [`inproc`] address, for a test that plays the peer.
pub(crate) fn listen(address: &str) -> net::inproc::Listener {
    net::inproc::listen(address.strip_prefix("inproc://").unwrap()).unwrap()
}
