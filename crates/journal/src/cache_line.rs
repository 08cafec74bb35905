//! [`CacheLine`]: a value that shares no cache line with others.

use std::ops::Deref;

/// A value with cache lines of its own. For values that one thread writes while others read their
/// neighbours: each write would take the line away from the readers. Processors fetch lines of 64
/// bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CacheLine<T>(pub(crate) T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{align_of, offset_of, size_of};
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::Journal;
    use crate::shard::Shard;
    use crate::shared::Shared;

    #[test]
    fn values_that_are_written_often_have_their_own_cache_lines() {
        assert_eq!(size_of::<CacheLine<AtomicU64>>(), 128);
        let written = [
            offset_of!(Shared, queued_bytes),
            offset_of!(Shared, doorbell),
            offset_of!(Shared, proposals),
            offset_of!(Shared, filing_bell),
            offset_of!(Shared, segments),
            offset_of!(Shared, counters),
        ];
        assert!(written.iter().all(|offset| offset % 128 == 0));
        let read = [
            offset_of!(Shared, disk),
            offset_of!(Shared, limits),
            offset_of!(Shared, shards),
            offset_of!(Shared, health),
        ];
        for offset in read {
            assert!(
                written.iter().all(|it| it / 128 != offset / 128),
                "{offset}"
            );
        }
        let (state, publication) = (
            offset_of!(Shard, state) / 128,
            offset_of!(Shard, publication) / 128,
        );
        assert_ne!(state, publication);
        // The counts of an `Arc` are in front of it.
        assert_eq!((align_of::<Journal>(), align_of::<Shard>()), (128, 128));
    }
}
