//! Lag of consumer groups: records between a committed offset and the high watermark.

use super::{TopicRef, Topics};

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

impl Topics {
    /// The lag of every group in every partition that it has committed an offset of, as groups are in
    /// memory; at most `limit`, the largest first, and the number of those that were left out.
    ///
    /// Partitions of topics that are gone have no lag.
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
        lags.sort_unstable_by(|one, other| {
            let key = |it: &GroupLag| (it.group.clone(), it.topic.clone(), it.partition);
            other
                .lag
                .cmp(&one.lag)
                .then_with(|| key(one).cmp(&key(other)))
        });
        let omitted = lags.len().saturating_sub(limit);
        lags.truncate(limit);
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
