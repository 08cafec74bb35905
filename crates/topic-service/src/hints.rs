//! Remembers where recent readers stopped: most readers continue there and need no search.

/// Number of reader positions that are remembered per partition.
const COUNT: usize = 8;

/// Offsets, each with the first record of the stream that may contain it.
#[derive(Debug, Default)]
pub(super) struct Hints {
    places: [Option<(u64, u64)>; COUNT],
    next: usize,
}

impl Hints {
    /// Returns the record from which to search for an offset, if it is remembered.
    pub(super) fn find(&self, offset: u64) -> Option<u64> {
        let mut places = self.places.iter().flatten();
        let found = places.find(|(known, _)| *known == offset);
        found.map(|(_, record)| *record)
    }

    /// Remembers that a reader will continue at an offset.
    pub(super) fn note(&mut self, offset: u64, record: u64) {
        if self.find(offset).is_none() {
            self.places[self.next] = Some((offset, record));
            self.next = (self.next + 1) % COUNT;
        }
    }
}
