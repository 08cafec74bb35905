//! The ids of the newest writes, which make retries idempotent.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Number of writes whose ids are stored. A retry is recognised unless more writes came after its
/// original.
pub const IDS_KEPT: usize = 1024;

/// Id that a writer gives to a write and all its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub [u8; 16]);

/// The newest [`IDS_KEPT`] writes, in order. A write without an id takes an entry too, so that the
/// lifetime of an id does not depend on other writers.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    newest: VecDeque<(u64, Option<WriteId>)>,
    offsets: HashMap<WriteId, u64>,
}

impl Ids {
    /// Returns the offset of the write with that id, if stored.
    pub(crate) fn find(&self, id: WriteId) -> Option<u64> {
        self.offsets.get(&id).copied()
    }

    /// Adds the newest write.
    pub(crate) fn push(&mut self, offset: u64, id: Option<WriteId>) {
        if self.newest.len() == IDS_KEPT
            && let Some((_, Some(oldest))) = self.newest.pop_front()
        {
            self.offsets.remove(&oldest);
        }
        self.newest.push_back((offset, id));
        if let Some(id) = id {
            self.offsets.insert(id, offset);
        }
    }

    /// Adds older and newer writes, some of which may be stored already.
    pub(crate) fn merge(&mut self, others: BTreeMap<u64, Option<WriteId>>) {
        let mut all = others;
        all.extend(self.newest.drain(..));
        self.offsets.clear();
        for (offset, id) in all {
            self.push(offset, id);
        }
    }

    /// Iterates over all writes, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Option<WriteId>)> + '_ {
        self.newest.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> WriteId {
        WriteId(number.to_le_bytes())
    }

    #[test]
    fn message_ids_of_the_newest_ids_kept_writes_are_found() {
        let mut ids = Ids::default();
        ids.push(7, Some(id(1)));
        for offset in 8..7 + IDS_KEPT as u64 {
            ids.push(offset, None);
        }
        assert_eq!(ids.find(id(1)), Some(7));
        ids.push(7 + IDS_KEPT as u64, Some(id(2)));
        assert_eq!(ids.find(id(1)), None);
        assert_eq!(ids.iter().count(), IDS_KEPT);
    }

    #[test]
    fn merge_ignores_ids_that_are_already_stored() {
        let mut ids = Ids::default();
        ids.push(4, Some(id(4)));
        ids.push(6, None);
        ids.merge(BTreeMap::from([
            (4, Some(id(4))),
            (5, Some(id(5))),
            (2, Some(id(2))),
        ]));
        let offsets: Vec<_> = ids.iter().map(|(offset, _)| offset).collect();
        assert_eq!(offsets, [2, 4, 5, 6]);
        assert_eq!(ids.find(id(5)), Some(5));
    }
}
