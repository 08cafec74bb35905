//! Deadlines of requests that wait for the disk.
//!
//! Every waiting answer has a deadline: that of the request, or a common one. A write that is not
//! confirmed by then may still become durable. The answer is then an error that says neither that
//! it is done nor that it is not, and after which clients retry.

use std::time::Duration;

use platform::NotDurable;
use tokio::time::{Instant, timeout_at};
use topic_service::ProduceError;

use super::errors::{Coded, Failed};

/// The deadline where the request states none. Most clients give up after 30 s and then consider
/// the connection broken, so the answer comes earlier.
const WAIT: Duration = Duration::from_secs(25);

/// The longest deadline.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// The shortest time for the disk, even if the request states less: some clients send 0, which
/// Kafka ignores on a single broker.
const DISK_WAIT_MIN: Duration = Duration::from_secs(1);

const LATE: &str = "the write was not confirmed in time, and may still succeed";

/// A deadline; see the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a request that states no timeout.
    pub(super) fn usual() -> Self {
        Self(Instant::now() + WAIT)
    }

    /// Returns the deadline of a request that waits this long for other clients, and then for the
    /// disk.
    pub(super) fn behind(others_ms: u32) -> Self {
        let others = Duration::from_millis(others_ms.into());
        Self(Instant::now() + others + WAIT)
    }

    /// Returns the deadline of a request that states a timeout.
    pub(super) fn asked(timeout_ms: i32) -> Self {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        Self(Instant::now() + timeout.min(WAIT_MAX))
    }

    /// Returns the deadline, but at least [`DISK_WAIT_MIN`] from now.
    pub(super) fn for_disk(self) -> Self {
        Self(self.0.max(Instant::now() + DISK_WAIT_MIN))
    }

    /// Returns the time of the deadline.
    pub(super) fn instant(self) -> Instant {
        self.0
    }

    /// Waits for an outcome until the deadline. An outcome that is not known by then becomes the
    /// error that `E` defines for it.
    pub(super) async fn known<T, E: Coded>(
        self,
        waiting: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, Failed> {
        let outcome = timeout_at(self.0, waiting).await;
        outcome.map_err(|_| Failed::new(E::LATE, LATE))
    }

    /// Waits for an outcome until the deadline, and converts its error to Kafka's.
    pub(super) async fn outcome<T, E: Coded>(
        self,
        waiting: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failed> {
        self.known(waiting).await?.map_err(Failed::from)
    }

    /// Waits until produced records are on disk, at most until the deadline.
    pub(super) async fn produced<T>(
        self,
        durable: impl Future<Output = Result<T, NotDurable>>,
    ) -> Result<T, Failed> {
        self.outcome(async { durable.await.map_err(ProduceError::from) })
            .await
    }
}
