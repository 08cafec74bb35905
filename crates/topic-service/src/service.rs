//! [`Topics`]: the topics of a node.

use std::sync::Arc;

use platform::Platform;
use store::Store;

use super::counts::Counts;
use super::error::OpenError;
use super::event_partitions::EventFeed;
use super::options::Options;
use super::records::Unpacked;
use super::state::State;
use super::users::UserSessions;

/// The topics of a node. Cheap to clone. See the documentation of the crate.
#[derive(Clone)]
pub struct Topics {
    pub(super) state: Arc<State>,
}

impl Topics {
    /// Loads the stored topics, on a node that leads all shards: creates the streams and partitions
    /// that are missing. With a feed, each namespace has a read-only topic of its events.
    pub fn open(
        platform: Arc<Platform>,
        store: Arc<Store>,
        options: Options,
        feed: Option<Arc<dyn EventFeed>>,
        sessions: Arc<dyn UserSessions>,
    ) -> Result<Self, OpenError> {
        let state = State::open(platform, store, options, feed, sessions)?;
        Ok(Self {
            state: Arc::new(state),
        })
    }

    /// Returns the options that the topics were opened with.
    pub fn options(&self) -> &Options {
        &self.state.options
    }

    /// Returns the counters.
    pub fn counts(&self) -> &Counts {
        &self.state.counts
    }

    /// Returns the budget for batches that are unpacked for readers.
    pub(super) fn unpacked(&self) -> &Arc<Unpacked> {
        &self.state.unpacked
    }

    /// Returns the bytes of all batches that are currently unpacked for readers.
    pub fn unpacked_bytes(&self) -> u64 {
        self.state.unpacked.held_bytes()
    }

    /// Returns the cluster id: random when the data directory was created, then constant.
    pub fn cluster_id(&self) -> u64 {
        self.state.journal.id()
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.state.platform.unix_ms()
    }

    /// Returns milliseconds of a clock that never steps; it starts at the wall-clock time when the
    /// topics were opened. Sessions, rebalances and transactions time out by it.
    pub(super) fn steady_ms(&self) -> u64 {
        let (unix_ms, ns) = self.state.opened;
        let since_ns = self.state.platform.now_ns().saturating_sub(ns);
        unix_ms.saturating_add(since_ns / 1_000_000)
    }

    /// Returns the time by which records, offsets and transactional ids expire: the wall clock
    /// without unconfirmed steps.
    pub(super) fn expiry_ms(&self) -> i64 {
        i64::try_from(self.state.platform.expiry_ms()).unwrap_or(i64::MAX)
    }

    /// Returns the wall-clock time in milliseconds, in the engines' type.
    pub(super) fn time_ms(&self) -> i64 {
        i64::try_from(self.now_ms()).unwrap_or(i64::MAX)
    }
}

impl std::fmt::Debug for Topics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Topics")
    }
}
