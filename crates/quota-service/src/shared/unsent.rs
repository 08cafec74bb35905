//! Unsent changes: debits and returns that were decided without the store.
//!
//! Settlements of holds, and grants during an outage, are summed per cell and sent a moment later,
//! whatever the balance there. Invariant: *no credit is returned twice*: a return that may have
//! arrived is not sent again, a debit is.

mod send;

use std::collections::BTreeMap;

use crate::quota_store::{RemoteCell, StoreUnavailable};

/// Maximum number of cells with unsent changes.
const CELLS_MAX: usize = 100_000;
/// Number of changes sent at a time.
const AT_ONCE: usize = 256;

/// Unsent changes, by cell and by the mark of the take.
#[derive(Default)]
pub(super) struct UnsentChanges {
    cells: BTreeMap<(String, Option<u64>), RemoteCell>,
    dropped: u64,
}

impl UnsentChanges {
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds a change; debits are sent before returns. Changes of a budget carry a mark.
    pub(super) fn add(&mut self, cell: RemoteCell) {
        let has_room = self.cells.len() < CELLS_MAX;
        let key = (cell.key.clone(), cell.mark);
        match self.cells.get_mut(&key) {
            Some(known) => {
                known.count = known.count.saturating_add(cell.count);
                known.kind = cell.kind;
                if known.count == 0 {
                    self.cells.remove(&key);
                }
            }
            None if has_room => drop(self.cells.insert(key, cell)),
            None => self.dropped += 1,
        }
    }

    /// Takes some unsent changes of cells whose keys begin with `prefix`.
    fn next(&mut self, prefix: &str) -> Vec<RemoteCell> {
        let from = (prefix.to_owned(), None);
        let of_prefix = self.cells.range(from..);
        let of_prefix = of_prefix.take_while(|((key, _), _)| key.starts_with(prefix));
        let keys: Vec<_> = of_prefix
            .map(|(key, _)| key.clone())
            .take(AT_ONCE)
            .collect();
        let cells = keys.iter().filter_map(|key| self.cells.remove(key));
        cells.collect()
    }

    /// Puts back changes that were not sent, or may not have arrived.
    fn put_back(&mut self, cells: Vec<RemoteCell>, error: &StoreUnavailable) {
        for cell in cells {
            match cell.count > 0 || !error.may_be_done {
                true => self.add(cell),
                false => self.dropped += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quota::Kind;

    use super::*;

    fn cell(key: &str, count: i64, mark: Option<u64>) -> RemoteCell {
        RemoteCell {
            key: key.to_owned(),
            kind: Kind::Slots { capacity: 1 },
            count,
            is_enforced: true,
            mark,
            lasting_ns: 0,
        }
    }

    fn unavailable(may_be_done: bool) -> StoreUnavailable {
        StoreUnavailable {
            may_be_done,
            reason: String::new(),
        }
    }

    #[test]
    fn unsent_changes_sum_per_cell_and_returns_are_sent_at_most_once() {
        let mut unsent = UnsentChanges::default();
        for (key, count, mark) in [
            ("a", 3, None),
            ("a", -3, None),
            ("b", 2, None),
            ("b", 2, None),
        ] {
            unsent.add(cell(key, count, mark));
        }
        unsent.add(cell("b", -1, Some(7)));
        let counts = |cells: &[RemoteCell]| cells.iter().map(|it| it.count).collect::<Vec<_>>();
        let next = unsent.next("");
        assert_eq!(counts(&next), [4, -1]);
        unsent.put_back(next, &unavailable(false));
        let next = unsent.next("");
        assert_eq!(counts(&next), [4, -1]);
        unsent.put_back(next, &unavailable(true));
        assert_eq!((counts(&unsent.next("")), unsent.dropped()), (vec![4], 1));
    }

    #[test]
    fn unsent_changes_beyond_the_cell_limit_are_dropped() {
        let mut unsent = UnsentChanges::default();
        for number in 0..CELLS_MAX + 3 {
            unsent.add(cell(&number.to_string(), 1, None));
        }
        unsent.add(cell("0", 1, None));
        assert_eq!((unsent.len(), unsent.dropped()), (CELLS_MAX, 3));
    }
}
