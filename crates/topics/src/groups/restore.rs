//! Restore of consumer groups from their records.

use std::sync::Arc;

use super::group::Group;
use super::{Groups, Options, Record};

/// Applies records in their order.
#[derive(Debug)]
pub struct Restore {
    groups: Groups,
}

impl Restore {
    /// Begins without groups. Limits apply to later requests, not to the records.
    pub fn new(options: Options) -> Self {
        Self {
            groups: Groups::new(options),
        }
    }

    /// Applies the next record.
    pub fn record(&mut self, record: Record) {
        let id = Arc::clone(record.group());
        if let Record::Gone { .. } = record {
            return self.groups.drop(&id);
        }
        let group = self.groups.groups.entry(id.clone());
        let group = group.or_insert_with(|| Group::new(id));
        match record {
            Record::Group(snapshot) => group.restore(snapshot),
            Record::Committed(marks) => group.offsets.commit(None, &marks),
            Record::Pending { producer, marks } => {
                group.offsets.commit(Some(producer), &marks);
            }
            Record::Ended {
                producer, ending, ..
            } => group.offsets.end(producer, ending),
            Record::Forgotten { partitions, .. } => {
                for (topic, partition) in partitions {
                    group.offsets.forget(&topic, partition);
                }
            }
            Record::Gone { .. } => unreachable!("a group that is gone was dropped"),
        }
    }

    /// Ends the restore: from now on the members need heartbeats.
    pub fn finish(self, now_ms: u64) -> Groups {
        let mut groups = self.groups;
        for id in groups.groups.keys().cloned().collect::<Vec<_>>() {
            if let Some(group) = groups.groups.get_mut(&id) {
                group.resume(now_ms);
            }
            groups.settle(&id);
        }
        groups
    }
}
