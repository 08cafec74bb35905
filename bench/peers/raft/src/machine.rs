//! The state machine: it counts blocks, and answers the clients of those that this node proposed.

use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use openraft::entry::RaftEntry;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf, StoredMembershipOf};
use openraft::{EntryPayload, OptionalSend, StoredMembership};

use crate::group::{Committed, Group};
use crate::types::{LogId, SnapshotData, Types};

/// The state machine of one group.
pub(crate) struct Machine {
    group: Arc<Group>,
    applied: Option<LogId>,
    membership: StoredMembershipOf<Types>,
    committed: Committed,
}

impl Machine {
    /// A state machine that has applied nothing.
    pub(crate) fn new(group: Arc<Group>) -> Machine {
        Machine {
            group,
            applied: None,
            membership: StoredMembership::default(),
            committed: Committed::default(),
        }
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = NoSnapshots;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId>, StoredMembershipOf<Types>), io::Error> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            self.applied = Some(entry.log_id());
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(block) => self
                    .group
                    .commit(&block, &mut self.committed)
                    .map_err(|failure| io::Error::other(failure.to_string()))?,
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembership::new(self.applied, membership);
                }
            }
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        self.committed.answer();
        self.group
            .set_needed(0, self.applied.map_or(0, |last| last.index + 1));
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> NoSnapshots {
        NoSnapshots
    }

    async fn install_snapshot(
        &mut self,
        _: &SnapshotMetaOf<Types>,
        _: SnapshotData,
    ) -> Result<(), io::Error> {
        Err(no_snapshots())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<SnapshotOf<Types, SnapshotData>>, io::Error> {
        Ok(None)
    }
}

/// A builder that builds nothing: a group here lives as long as its entries stay in memory.
pub(crate) struct NoSnapshots;

impl RaftSnapshotBuilder<Types> for NoSnapshots {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<Types, SnapshotData>, io::Error> {
        Err(no_snapshots())
    }
}

fn no_snapshots() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "there are no snapshots here")
}
