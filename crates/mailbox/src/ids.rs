//! The ids of the newest writes: what makes a retry idempotent.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Writes whose ids are known: a retry is recognised unless this many came after its original.
pub const IDS_KEPT: usize = 1024;

/// What a writer calls its write; the same in each of its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub [u8; 16]);

/// The newest [`IDS_KEPT`] writes, in order. One without an id takes a place too, so that how long
/// an id is known does not depend on what others do.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    newest: VecDeque<(u64, Option<WriteId>)>,
    offsets: HashMap<WriteId, u64>,
}

impl Ids {
    /// The write of that id, while it is known.
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

    /// Adds any writes, some of which may be known already.
    pub(crate) fn merge(&mut self, others: BTreeMap<u64, Option<WriteId>>) {
        let mut all = others;
        all.extend(self.newest.drain(..));
        self.offsets.clear();
        for (offset, id) in all {
            self.push(offset, id);
        }
    }

    /// All of them, oldest first.
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
    fn an_id_is_known_until_as_many_writes_came_after_it() {
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
    fn what_is_known_already_is_not_added_again() {
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
