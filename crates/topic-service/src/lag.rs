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
}

impl GroupLag {
    fn largest_first(&self, other: &Self) -> Ordering {
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
        let mut lags = Vec::new();
        self.each_commit(|group, topic, partition, offset| {
            lags.push(GroupLag {
                group: group.into(),
                topic: topic.into(),
                partition,
                lag: offset,
            });
        });
        // No lock of a partition is taken while one of the groups is held.
        lags.retain_mut(
            |it| match self.lag_behind(&it.topic, it.partition, it.lag) {
                Some(lag) => {
                    it.lag = lag;
                    true
                }
                None => false,
            },
        );
        let omitted = lags.len().saturating_sub(limit);
        if omitted > 0 && limit > 0 {
            // The others need no order.
            lags.select_nth_unstable_by(limit - 1, GroupLag::largest_first);
        }
        lags.truncate(limit);
        lags.sort_unstable_by(GroupLag::largest_first);
        (lags, omitted)
    }

    fn lag_behind(&self, topic: &str, partition: u32, offset: u64) -> Option<u64> {
        let topic = self.find(TopicRef::Name(topic))?;
        let view = self.view(&topic, partition).ok()?;
        Some(
            view.high_watermark
                .saturating_sub(offset.max(view.log_start)),
        )
    }
}
