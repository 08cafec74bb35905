//! How long a request waits for the disk.
//!
//! Every answer that waits has a deadline: what the request says, or the same for all. What is not
//! known by then may come to be all the same: the answer says neither that it is done nor that it is
//! not, by an error after which clients try again.

use std::time::Duration;

use node::topics::{Pending, Unconfirmed};
use tokio::time::{Instant, timeout_at};

use super::errors::{Coded, Failed};

/// Where the request does not say it. Most clients give up after 30 s, and take the connection for
/// broken then: they are to hear of it before.
const WAIT: Duration = Duration::from_secs(25);

/// The longest that anybody waits.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// As long as this a disk may take, whatever the request says: some say nothing, which Kafka minds only
/// where several brokers have to answer.
const DISK_WAIT_MIN: Duration = Duration::from_secs(1);

const LATE: &str = "it is not on disk in time, and may be kept";

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Of a request that does not say how long it may take.
    pub(super) fn usual() -> Self {
        Self(Instant::now() + WAIT)
    }

    /// Of a request that waits for others for so long, and for the disk then.
    pub(super) fn behind(others_ms: u32) -> Self {
        let others = Duration::from_millis(others_ms.into());
        Self(Instant::now() + others + WAIT)
    }

    /// Of a request that says how long it may take.
    pub(super) fn asked(timeout_ms: i32) -> Self {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        Self(Instant::now() + timeout.min(WAIT_MAX))
    }

    /// The same, and not before the disk has had a moment from now on.
    pub(super) fn for_disk(self) -> Self {
        Self(self.0.max(Instant::now() + DISK_WAIT_MIN))
    }

    /// When it is.
    pub(super) fn instant(self) -> Instant {
        self.0
    }

    /// What is known of it by then; else an error of whoever would say why it failed.
    pub(super) async fn known<T, E: Coded>(
        self,
        waiting: impl Future<Output = Result<T, Unconfirmed>>,
    ) -> Result<T, Failed> {
        match timeout_at(self.0, waiting).await {
            Ok(Ok(known)) => Ok(known),
            Ok(Err(unconfirmed)) => Err(Failed::new(E::UNCONFIRMED, unconfirmed.to_string())),
            Err(_) => Err(Failed::new(E::LATE, LATE)),
        }
    }

    /// What the node says by then, in Kafka's terms.
    pub(super) async fn told<T, E: Coded>(
        self,
        pending: Pending<Result<T, E>>,
    ) -> Result<T, Failed> {
        let known = self.known::<_, E>(pending).await?;
        known.map_err(Failed::from)
    }
}
