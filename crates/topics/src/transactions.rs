//! The transactions of a partition: open, ended and aborted ones.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::ids::ProducerId;
use crate::partition::Ending;

/// An aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub(crate) id: ProducerId,
    pub(crate) first: u64,
    /// The offset of its marker.
    pub(crate) last: u64,
    /// The last stable offset when it ended: later transactions of the list begin no earlier.
    pub(crate) stable: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transactions {
    /// Open transactions, by first offset.
    ongoing: BTreeMap<u64, ProducerId>,
    /// Ended transactions whose marker is not shown yet: from the first offset to the marker's.
    unsettled: Vec<Range<u64>>,
    /// Aborted transactions, ordered by their markers.
    aborted: Vec<Aborted>,
}

impl Transactions {
    /// Restores the transactions of a snapshot, which is durable.
    pub(crate) fn restore(ongoing: BTreeMap<u64, ProducerId>, aborted: Vec<Aborted>) -> Self {
        Self {
            ongoing,
            unsettled: Vec::new(),
            aborted,
        }
    }

    pub(crate) fn all_aborted(&self) -> &[Aborted] {
        &self.aborted
    }

    pub(crate) fn begin(&mut self, id: ProducerId, first: u64) {
        self.ongoing.insert(first, id);
    }

    /// Ends the transaction that began at the start of the range, with a marker at its end.
    pub(crate) fn finish(&mut self, id: ProducerId, offsets: Range<u64>, ending: Ending) {
        let (first, last) = (offsets.start, offsets.end);
        self.ongoing.remove(&first);
        if ending == Ending::Abort {
            let next = self.ongoing.keys().next();
            self.aborted.push(Aborted {
                id,
                first,
                last,
                stable: next.copied().unwrap_or(last + 1),
            });
        }
        self.unsettled.push(offsets);
    }

    pub(crate) fn shown(&mut self, shown: u64) {
        self.unsettled.retain(|it| it.end >= shown);
    }

    pub(crate) fn first_unstable(&self) -> Option<u64> {
        let unsettled = self.unsettled.iter().map(|it| it.start);
        self.ongoing.keys().copied().chain(unsettled).min()
    }

    pub(crate) fn trim(&mut self, log_start: u64) {
        let gone = self.aborted.partition_point(|it| it.last < log_start);
        self.aborted.drain(..gone);
    }

    /// Returns the aborted transactions with records from `offset` to before `end`.
    pub(crate) fn aborted(&self, offset: u64, end: u64) -> impl Iterator<Item = &Aborted> {
        let before = self.aborted.partition_point(|it| it.last < offset);
        let behind = &self.aborted[before..];
        // No transaction was open before `end` when this one ended, so the search stops there.
        let last = behind.iter().position(|it| it.stable >= end);
        let looked_at = &behind[..last.map_or(behind.len(), |at| at + 1)];
        looked_at.iter().filter(move |it| it.first < end)
    }
}
