//! Consumer groups.

use ::topics::Claim;
use ::topics::groups::{
    Caller, Description, Join, Joined, Leaver, Mark, Refused, State as GroupState, Synced,
    Synchronize,
};

use super::Topics;
use super::error::{GroupError, Storage};
use super::pending::Pending;

/// What a group has committed of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Which topic.
    pub topic: Box<str>,
    /// Which partition of it.
    pub partition: u32,
    /// What was committed; `None` for nothing.
    pub mark: Option<::topics::groups::Committed>,
    /// An open transaction would commit an offset there: whoever asks for stable offsets is told
    /// UNSTABLE_OFFSET_COMMIT.
    pub is_unstable: bool,
}

/// A group, for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// What it is called.
    pub group: Box<str>,
    /// What its members agree on; empty if it never had members.
    pub protocol_type: Box<str>,
    /// Where it stands.
    pub state: GroupState,
}

type Each = Vec<Result<(), Refused>>;

impl Topics {
    /// Somebody joins a group; answered when the rebalance is over. `random` of the join is filled in.
    pub fn join(&self, join: Join<'_>) -> Pending<Result<Joined, GroupError>> {
        unbuilt(join)
    }

    /// A member asks what is assigned to it; answered when the leader has said so.
    pub fn sync(&self, ask: &Synchronize<'_>) -> Pending<Result<Synced, GroupError>> {
        unbuilt(ask)
    }

    /// A member lives.
    pub fn heartbeat(&self, caller: Caller<'_>) -> Pending<Result<(), GroupError>> {
        unbuilt(caller)
    }

    /// Members leave, each for itself: an answer for each, in their order.
    pub fn leave(&self, group: &str, leavers: &[Leaver<'_>]) -> Pending<Result<Each, GroupError>> {
        unbuilt((group, leavers))
    }

    /// Commits offsets: an answer for each, in their order. Whether there are such partitions was
    /// looked at by the caller. `expires_ms` is when they are forgotten, if the client said so.
    pub fn commit(
        &self,
        caller: Caller<'_>,
        marks: &[Mark<'_>],
        expires_ms: Option<u64>,
    ) -> Pending<Result<Each, GroupError>> {
        unbuilt((caller, marks, expires_ms))
    }

    /// Commits offsets when a transaction does (TxnOffsetCommit), which must know of the group.
    pub fn commit_in_transaction(
        &self,
        claim: &Claim<'_>,
        caller: Caller<'_>,
        marks: &[Mark<'_>],
    ) -> Pending<Result<Each, GroupError>> {
        unbuilt((claim, caller, marks))
    }

    /// What a group has committed: of these topics and partitions, or all there is. A group that is
    /// not there has committed nothing.
    pub fn committed(
        &self,
        group: &str,
        partitions: Option<&[(&str, u32)]>,
    ) -> Pending<Result<Vec<Committed>, GroupError>> {
        unbuilt((group, partitions))
    }

    /// All groups.
    pub fn groups(&self) -> Pending<Result<Vec<GroupView>, GroupError>> {
        unbuilt(())
    }

    /// A group for people; `None` is what Kafka calls *Dead*.
    pub fn describe_group(&self, group: &str) -> Pending<Result<Option<Description>, GroupError>> {
        unbuilt(group)
    }

    /// Deletes a group, if it has no members.
    pub fn delete_group(&self, group: &str) -> Pending<Result<(), GroupError>> {
        unbuilt(group)
    }

    /// Deletes offsets: an answer for each, in their order.
    pub fn delete_offsets(
        &self,
        group: &str,
        partitions: &[(&str, u32)],
    ) -> Pending<Result<Each, GroupError>> {
        unbuilt((group, partitions))
    }
}

impl Topics {
    /// Nobody has read anything of the next topic of that name.
    pub(super) fn forget_topic(&self, _name: &str) {}
}

fn unbuilt<T>(_: impl Sized) -> Pending<Result<T, GroupError>> {
    let reason = "groups are not served yet".to_owned();
    Pending::now(Err(Storage::Failed { reason }.into()))
}
