//! Lag of consumer groups: records between a committed offset and the high watermark.

use std::cmp::Ordering;

use crate::service::Topics;
use crate::topic::TopicRef;

/// Lag of one group in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLag {
    /// The group.
    pub group: Box<str>,
    /// The topic, as clients call it.
    pub topic: Box<str>,
    /// The partition.
    pub partition: u32,
    /// Records from the committed offset to the high watermark; those that retention has deleted
    /// are not counted.
    pub lag: u64,
    /// The high watermark.
    pub end: u64,
}

impl GroupLag {
    /// Orders lags, the largest first, then by group, topic and partition.
    pub fn largest_first(&self, other: &Self) -> Ordering {
        let by_lag = other.lag.cmp(&self.lag);
        let by_group = || self.group.cmp(&other.group);
        let by_topic = || self.topic.cmp(&other.topic);
        let by_partition = || self.partition.cmp(&other.partition);
        by_lag
            .then_with(by_group)
            .then_with(by_topic)
            .then_with(by_partition)
    }
}

impl Topics {
    /// Returns the lag of every group in every partition for which it has committed an offset, as
    /// groups are in memory; at most `limit` rows, the largest first, and the number of those left
    /// out.
    ///
    /// Partitions of deleted topics have no lag.
    pub fn group_lags(&self, limit: usize) -> (Vec<GroupLag>, usize) {
        let mut commits = Vec::new();
        self.each_commit(|group, topic, partition, offset| {
            commits.push((Box::from(group), Box::from(topic), partition, offset));
        });
        // No lock of a partition is taken while one of the groups is held.
        let lags = commits.into_iter();
        let mut lags: Vec<_> = lags.filter_map(|commit| self.lag_behind(commit)).collect();
        let omitted = lags.len().saturating_sub(limit);
        if omitted > 0 && limit > 0 {
            // The others need no order.
            lags.select_nth_unstable_by(limit - 1, GroupLag::largest_first);
        }
        lags.truncate(limit);
        lags.sort_unstable_by(GroupLag::largest_first);
        (lags, omitted)
    }

    /// Returns the lag of one group, by topic and partition, as the group is in memory.
    pub fn lags_of_group(&self, group: &str) -> Vec<GroupLag> {
        let mut commits = Vec::new();
        self.each_commit_of(group, |topic, partition, offset| {
            commits.push((Box::from(group), Box::from(topic), partition, offset));
        });
        let lags = commits.into_iter();
        lags.filter_map(|commit| self.lag_behind(commit)).collect()
    }

    /// Returns the lag of a commit: the group, the topic, the partition and the offset.
    fn lag_behind(
        &self,
        (group, name, partition, offset): (Box<str>, Box<str>, u32, u64),
    ) -> Option<GroupLag> {
        let topic = self.find(TopicRef::Name(&name))?;
        let view = self.view(&topic, partition).ok()?;
        let end = view.high_watermark;
        Some(GroupLag {
            group,
            topic: name,
            partition,
            lag: end.saturating_sub(offset.max(view.log_start)),
            end,
        })
    }
}
