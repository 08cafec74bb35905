//! Leader epochs of a partition: the first offset of each, as in Kafka's leader epoch cache
//! (KIP-101).
//!
//! When there are too many epochs, the oldest are dropped. Their end is then reported as the start
//! of the first known epoch, which is never too early.

/// The largest number of epochs that are stored.
const COUNT_MAX: usize = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    /// Each epoch and its first offset; both rise.
    starts: Vec<(i32, u64)>,
}

impl Epochs {
    pub(crate) fn restore(starts: Vec<(i32, u64)>) -> Option<Self> {
        let rises = |pair: &[(i32, u64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
        starts.windows(2).all(rises).then_some(Self { starts })
    }

    pub(crate) fn starts(&self) -> &[(i32, u64)] {
        &self.starts
    }

    /// Begins an epoch at `start`. An epoch without records is removed; an epoch that is not newer
    /// than the newest one changes nothing.
    pub(crate) fn begin(&mut self, epoch: i32, start: u64) {
        if self.newest().is_some_and(|newest| newest >= epoch) {
            return;
        }
        let kept = self.starts.partition_point(|it| it.1 < start);
        self.starts.truncate(kept);
        self.starts.push((epoch, start));
        let forgotten = self.starts.len().saturating_sub(COUNT_MAX);
        self.starts.drain(..forgotten);
    }

    /// Drops the epochs before `log_start`; the epoch that contains it begins there.
    pub(crate) fn trim(&mut self, log_start: u64) {
        let behind = self.starts.partition_point(|it| it.1 <= log_start);
        let Some(gone) = behind.checked_sub(1) else {
            return;
        };
        self.starts.drain(..gone);
        self.starts[0].1 = log_start;
    }

    pub(crate) fn newest(&self) -> Option<i32> {
        self.starts.last().map(|it| it.0)
    }

    /// Returns the epoch of the record at `offset`, or of the next record if `offset` is the end.
    pub(crate) fn at(&self, offset: u64) -> Option<i32> {
        let behind = self.starts.partition_point(|it| it.1 <= offset);
        Some(self.starts[behind.checked_sub(1)?].0)
    }

    /// Returns the newest epoch that is not newer than `epoch`, and its end offset. An epoch older
    /// than all known ones ends where the first of them begins.
    pub(crate) fn end_of(&self, epoch: i32, end: u64) -> Option<(i32, u64)> {
        let newest = self.newest()?;
        if epoch == newest {
            return Some((epoch, end));
        }
        let behind = self.starts.partition_point(|it| it.0 <= epoch);
        let next = self.starts.get(behind)?;
        let of = behind.checked_sub(1).map_or(epoch, |at| self.starts[at].0);
        Some((of, next.1.min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_where_the_next_one_begins() {
        let mut epochs = Epochs::default();
        assert_eq!(epochs.end_of(0, 9), None);
        epochs.begin(2, 0);
        epochs.begin(3, 10);
        epochs.begin(4, 10);
        epochs.begin(7, 20);
        epochs.begin(7, 25);
        assert_eq!(epochs.starts(), [(2, 0), (4, 10), (7, 20)]);
        assert_eq!(epochs.end_of(1, 30), Some((1, 0)));
        assert_eq!(epochs.end_of(2, 30), Some((2, 10)));
        assert_eq!(epochs.end_of(5, 30), Some((4, 20)));
        assert_eq!(epochs.end_of(7, 30), Some((7, 30)));
        assert_eq!(epochs.end_of(8, 30), None);
        let at = [0, 9, 10, 19, 20, 99].map(|offset| epochs.at(offset));
        assert_eq!(at, [2, 2, 4, 4, 7, 7].map(Some));
        epochs.trim(15);
        assert_eq!(epochs.starts(), [(4, 15), (7, 20)]);
        assert_eq!(epochs.at(14), None);
        epochs.trim(40);
        assert_eq!(epochs.starts(), [(7, 40)]);
    }

    #[test]
    fn only_the_newest_leader_epochs_are_stored_and_end_offsets_stay_correct() {
        let mut epochs = Epochs::default();
        for epoch in 0..2_000 {
            epochs.begin(epoch, 10 * epoch as u64);
        }
        assert_eq!(epochs.starts().len(), COUNT_MAX);
        assert_eq!(epochs.end_of(1_500, 20_000), Some((1_500, 15_010)));
        assert_eq!(epochs.end_of(3, 20_000), Some((3, 10_000)));
    }
}
