//! Waits for a condition.

use std::time::Duration;

/// The time after which a test that waits has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until a condition holds. `what` names it in the failure.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}
