//! Where readers will go on: most of them read on where they stopped, and need not look for the place.

/// Readers of one partition whose places are kept.
const COUNT: usize = 8;

/// Offsets, each with the first record of the stream that may hold it.
#[derive(Debug, Default)]
pub(super) struct Hints {
    places: [Option<(u64, u64)>; COUNT],
    next: usize,
}

impl Hints {
    /// The record from which on to look for an offset.
    pub(super) fn find(&self, offset: u64) -> Option<u64> {
        let mut places = self.places.iter().flatten();
        let found = places.find(|(known, _)| *known == offset);
        found.map(|(_, record)| *record)
    }

    /// A reader will come for that offset.
    pub(super) fn note(&mut self, offset: u64, record: u64) {
        if self.find(offset).is_none() {
            self.places[self.next] = Some((offset, record));
            self.next = (self.next + 1) % COUNT;
        }
    }
}
