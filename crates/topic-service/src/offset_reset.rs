//! Reset of the offsets of a consumer group without members: the new offset of each partition, and
//! its commit.
//!
//! The rules are those of Kafka's `kafka-consumer-groups --reset-offsets`: the group must have no
//! members, and an offset outside of the partition becomes the nearest one inside.

use topics::groups::{Caller, Mark, Refused};
use topics::{Find, Isolation};

use crate::error::{FetchError, GroupError};
use crate::service::Topics;
use crate::topic::{Topic, TopicRef};

/// The position to which the offsets of a group are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetTarget {
    /// The first existing record.
    Earliest,
    /// The end of the partition (high watermark).
    Latest,
    /// This offset.
    Offset(u64),
    /// The first record that is not older than this time, in milliseconds since 1970-01-01 UTC; the
    /// end of the partition if there is none.
    Time(i64),
    /// The committed offset plus this number.
    Shift(i64),
}

/// The new offset of a group in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetChange {
    /// The topic.
    pub topic: Box<str>,
    /// The partition.
    pub partition: u32,
    /// The committed offset; `None` if the group has committed none.
    pub committed: Option<u64>,
    /// The new offset.
    pub offset: u64,
    /// The first existing offset of the partition.
    pub start: u64,
    /// The offset after the last record that consumers see (high watermark).
    pub end: u64,
    /// True if the requested offset is outside of the partition, so that the new one is its start or
    /// its end.
    pub is_clamped: bool,
}

/// The offsets of a group were not reset, or cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// The group does not exist, and no topic was named for a new one.
    #[error("there is no consumer group `{group}`")]
    UnknownGroup {
        /// The name of the group.
        group: Box<str>,
    },
    /// The group has members, which would continue from their own positions.
    #[error(
        "the consumer group `{group}` has members ({members}, state {state}), and its offsets can be \
         reset only while it has none: stop its consumers"
    )]
    Members {
        /// The name of the group.
        group: Box<str>,
        /// Its state.
        state: &'static str,
        /// The number of its members.
        members: usize,
    },
    /// A consumer joined the group before the offsets were committed.
    #[error(
        "a consumer has joined the group `{group}` meanwhile, and its offsets can be reset only while \
         it has no members: stop its consumers"
    )]
    Joined {
        /// The name of the group.
        group: Box<str>,
    },
    /// The group has no committed offsets, and no topic was named.
    #[error("the consumer group `{group}` has committed no offset: name a topic")]
    NoOffsets {
        /// The name of the group.
        group: Box<str>,
    },
    /// A shift needs a committed offset.
    #[error(
        "the consumer group `{group}` has committed no offset of partition {partition} of `{topic}`, \
         so that it cannot be shifted"
    )]
    NotCommitted {
        /// The name of the group.
        group: Box<str>,
        /// The topic.
        topic: Box<str>,
        /// The partition.
        partition: u32,
    },
    /// The group refused the offsets of some partitions; those of the others were committed.
    #[error("{refused} of {count} offsets were not committed: {reason}")]
    Partly {
        /// The number of refused offsets.
        refused: usize,
        /// The number of all offsets.
        count: usize,
        /// Reason for which the first one was refused.
        reason: Refused,
    },
    /// See [`GroupError`].
    #[error(transparent)]
    Group(#[from] GroupError),
    /// See [`FetchError`].
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl OffsetChange {
    /// Returns the lag at the committed offset; `None` without one.
    pub fn lag_before(&self) -> Option<u64> {
        let committed = self.committed?.max(self.start);
        Some(self.end.saturating_sub(committed))
    }

    /// Returns the lag at the new offset.
    pub fn lag_after(&self) -> u64 {
        self.end.saturating_sub(self.offset)
    }
}

impl Topics {
    /// Returns the changes that a reset would make, by topic and partition: in these partitions of a
    /// topic, or in every partition for which the group has committed an offset. Changes nothing.
    pub async fn plan_reset(
        &self,
        group: &str,
        scope: Option<(&Topic, &[u32])>,
        target: ResetTarget,
    ) -> Result<Vec<OffsetChange>, ResetError> {
        self.check_inactive(group, scope.is_some()).await?;
        let committed = match scope {
            None => self.committed(group, None),
            Some((topic, partitions)) => {
                let name = topic.about().name.as_str();
                let partitions: Vec<_> = partitions.iter().map(|it| (name, *it)).collect();
                self.committed(group, Some(&partitions))
            }
        };
        let committed = committed.await?;
        let mut changes = Vec::with_capacity(committed.len());
        for position in committed {
            let found = match scope {
                Some(_) => None,
                // The offsets of a topic that was deleted meanwhile do not exist any more.
                None => match self.find(TopicRef::Name(&position.topic)) {
                    Some(found) => Some(found),
                    None => continue,
                },
            };
            let Some(topic) = found.as_deref().or(scope.map(|(topic, _)| topic)) else {
                continue;
            };
            let offset = position.mark.map(|mark| mark.offset);
            let offset = offset.and_then(|offset| u64::try_from(offset).ok());
            let change = self.plan_partition(group, topic, position.partition, offset, target);
            changes.push(change.await?);
        }
        match changes.is_empty() && scope.is_none() {
            true => Err(ResetError::NoOffsets {
                group: group.into(),
            }),
            false => Ok(changes),
        }
    }

    async fn plan_partition(
        &self,
        group: &str,
        topic: &Topic,
        partition: u32,
        committed: Option<u64>,
        target: ResetTarget,
    ) -> Result<OffsetChange, ResetError> {
        let located = match target {
            ResetTarget::Time(unix_ms) => {
                let find = Find::Time(unix_ms);
                let located = self.locate(topic, partition, find, Isolation::Uncommitted);
                located.await?.map(|it| it.offset)
            }
            _ => None,
        };
        let view = self.view(topic, partition).map_err(FetchError::from)?;
        let name = topic.about().name.as_str();
        let (start, end) = (view.log_start, view.high_watermark);
        let wanted = match target {
            ResetTarget::Earliest => start,
            ResetTarget::Latest => end,
            ResetTarget::Offset(offset) => offset,
            ResetTarget::Time(_) => located.unwrap_or(end),
            ResetTarget::Shift(by) => match committed {
                Some(committed) => committed.saturating_add_signed(by),
                None => {
                    return Err(ResetError::NotCommitted {
                        group: group.into(),
                        topic: name.into(),
                        partition,
                    });
                }
            },
        };
        let offset = wanted.min(end).max(start);
        Ok(OffsetChange {
            topic: name.into(),
            partition,
            committed,
            offset,
            start,
            end,
            is_clamped: offset != wanted,
        })
    }

    /// Commits planned changes; returns when they are durable. Fails if the group has got members.
    pub async fn reset_offsets(
        &self,
        group: &str,
        changes: &[OffsetChange],
    ) -> Result<(), ResetError> {
        let marks = changes.iter().map(|change| Mark {
            topic: &change.topic,
            partition: change.partition,
            offset: i64::try_from(change.offset).unwrap_or(i64::MAX),
            leader_epoch: -1,
            metadata: "",
        });
        let marks: Vec<_> = marks.collect();
        // The engine accepts offsets of a client that is no member only while there are none.
        let caller = Caller {
            group,
            member: "",
            instance: None,
            generation: -1,
        };
        let committing = self.commit(caller, &marks, None);
        let answers = match committing.await {
            Ok(answers) => answers,
            Err(GroupError::Refused(Refused::UnknownMember)) => {
                let group = group.into();
                return Err(ResetError::Joined { group });
            }
            Err(error) => return Err(error.into()),
        };
        let mut refusals = answers.iter().filter_map(|answer| answer.as_ref().err());
        match refusals.next() {
            None => Ok(()),
            Some(reason) => Err(ResetError::Partly {
                reason: reason.clone(),
                refused: 1 + refusals.count(),
                count: answers.len(),
            }),
        }
    }

    /// Checks that a group has no members. It may be missing if it `may_be_new`.
    async fn check_inactive(&self, group: &str, may_be_new: bool) -> Result<(), ResetError> {
        match self.describe_group(group).await? {
            Some(described) if described.members.is_empty() => Ok(()),
            Some(described) => Err(ResetError::Members {
                group: group.into(),
                state: described.state.name(),
                members: described.members.len(),
            }),
            None if may_be_new => Ok(()),
            None => Err(ResetError::UnknownGroup {
                group: group.into(),
            }),
        }
    }
}
