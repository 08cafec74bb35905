//! What the tests have in common.

mod bare;
mod handlers;
mod places;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) use bare::{Bare, Frame, WINDOW, tag};
pub(crate) use handlers::{Gate, Guard, Probe, echo};
pub(crate) use places::{Certificate, Node, everywhere, name, through_a_node};

/// The longest that a test may take. On a clock that stands still it passes at once when nobody
/// has anything left to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test, which must end.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, test).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("the test did not end within {PATIENCE:?}"),
    }
}

/// On a clock that stands still: returns when nobody can go on without it.
pub(crate) async fn everybody_rests() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// An address within this process that no other test has.
pub(crate) fn inproc() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("inproc://it-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Listens at an address of [`inproc`], for a test that plays the other side itself.
pub(crate) fn listen(address: &str) -> net::inproc::Listener {
    net::inproc::listen(address.strip_prefix("inproc://").unwrap()).unwrap()
}
