//! The state machine: applying an entry commits its block.
//!
//! A snapshot says that everything up to an entry is applied, and carries nothing: it costs nothing
//! and only permits to purge. A node that lacks purged entries cannot be brought up with it.

use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use journal::Index;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::watch;

use super::ShardLog;
use super::log::LogError;
use super::types::{LogId, StoredMembership, Types};

/// The content of a snapshot: nothing.
pub(crate) type SnapshotData = ();

/// The consensus of one shard.
pub(crate) type Raft = openraft::Raft<Types, Machine>;

/// The state machine of one shard.
pub(crate) struct Machine {
    log: Arc<ShardLog>,
    membership: StoredMembership,
    /// The last applied entry.
    applied: watch::Sender<Option<LogId>>,
    snapshot: Arc<parking_lot::Mutex<Option<SnapshotMetaOf<Types>>>>,
}

impl Machine {
    /// Creates the state machine of a log. What is filed is applied.
    pub(crate) fn new(log: Arc<ShardLog>) -> Result<Machine, LogError> {
        let (filed, membership) = log.filed()?;
        Ok(Machine {
            log,
            membership,
            applied: watch::Sender::new(filed),
            snapshot: Arc::default(),
        })
    }

    /// Returns a receiver of the last applied entry.
    pub(crate) fn applied(&self) -> watch::Receiver<Option<LogId>> {
        self.applied.subscribe()
    }

    fn last_applied(&self) -> Option<LogId> {
        *self.applied.borrow()
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.last_applied(), self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        let mut last = None;
        let mut responders = Vec::new();
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            last = Some(entry.log_id);
            if let EntryPayload::Membership(membership) = entry.payload {
                self.membership = StoredMembership::new(last, membership);
            }
            responders.extend(responder);
        }
        if let Some(last) = last {
            self.log
                .journal
                .commit(self.log.shard, Index(last.index + 1));
            self.applied.send_replace(Some(last));
        }
        responders.into_iter().for_each(|it| it.send(()));
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder {
            meta: SnapshotMetaOf::<Types> {
                last_log_id: self.last_applied(),
                last_membership: self.membership.clone(),
            },
            built: self.snapshot.clone(),
        }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf<Types>,
        _: SnapshotData,
    ) -> Result<(), io::Error> {
        // At its start openraft installs the snapshot that the state machine itself has.
        if meta.last_log_id <= self.last_applied() {
            return Ok(());
        }
        let message = "this node lacks entries that its peers have purged";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<SnapshotOf<Types, SnapshotData>>, io::Error> {
        let meta = self.snapshot.lock().clone();
        Ok(meta.map(|meta| SnapshotOf::<Types, SnapshotData> { meta, snapshot: () }))
    }
}

/// Builds a snapshot of the moment in which it was created.
pub(crate) struct SnapshotBuilder {
    meta: SnapshotMetaOf<Types>,
    built: Arc<parking_lot::Mutex<Option<SnapshotMetaOf<Types>>>>,
}

impl RaftSnapshotBuilder<Types> for SnapshotBuilder {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<Types, SnapshotData>, io::Error> {
        let meta = self.meta.clone();
        *self.built.lock() = Some(meta.clone());
        Ok(SnapshotOf::<Types, SnapshotData> { meta, snapshot: () })
    }
}
