//! What is known of every stream, from all extents and all of the line.
//!
//! It is filled twice: first with where streams start and end, which the newest word decides, then
//! with their records in order, which are counted as alive or dead by that and checked for gaps.

use std::collections::BTreeMap;

use super::{Inspection, Missing};
use crate::extent::Entry;
use crate::record::{RecordKind, RecordView};
use crate::{ShardId, StreamId};

/// Gaps that are listed.
const MISSING_MAX: usize = 256;

/// How a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamView {
    /// The first offset there is.
    pub start: u64,
    /// The offset behind the last that was given out, as far as that is known.
    pub next: u64,
    /// Records below it were erased.
    pub erased: u64,
    /// Records from the start on that are there.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of records below the start: gone for readers, still on disk.
    pub dead_bytes: u64,
    /// Of those, bytes that an erase wants off the disk.
    pub unerased_bytes: u64,
    /// The offset that comes next when records are visited in order.
    expected: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Table {
    streams: BTreeMap<(ShardId, StreamId), StreamView>,
    kept_of: Option<(ShardId, StreamId)>,
    kept: BTreeMap<u64, (u8, Vec<u8>)>,
    missing: Vec<Missing>,
}

impl Table {
    pub(super) fn new(kept_of: Option<(ShardId, StreamId)>) -> Self {
        Self {
            streams: BTreeMap::new(),
            kept_of,
            kept: BTreeMap::new(),
            missing: Vec::new(),
        }
    }

    /// What an extent's table says.
    pub(super) fn learn_entry(&mut self, shard: ShardId, entry: &Entry) {
        let stream = self.streams.entry((shard, entry.stream)).or_default();
        stream.start = stream.start.max(entry.start);
        stream.erased = stream.erased.max(entry.erased);
        stream.next = stream.next.max(entry.next).max(stream.start);
    }

    /// What a record of the line says of where its stream starts and ends.
    pub(super) fn learn_record(&mut self, shard: ShardId, record: &RecordView<'_>) {
        let stream = self.streams.entry((shard, record.stream)).or_default();
        match record.kind {
            RecordKind::Data => stream.next = stream.next.max(record.offset.saturating_add(1)),
            RecordKind::Trim => stream.start = stream.start.max(record.offset),
            RecordKind::Erase => {
                stream.start = stream.start.max(record.offset);
                stream.erased = stream.erased.max(record.offset);
            }
        }
        stream.next = stream.next.max(stream.start);
    }

    /// Takes over what another table learnt.
    pub(super) fn absorb(&mut self, words: Table) {
        for (key, word) in words.streams {
            let stream = self.streams.entry(key).or_default();
            stream.start = stream.start.max(word.start);
            stream.erased = stream.erased.max(word.erased);
            stream.next = stream.next.max(word.next).max(stream.start);
        }
    }

    /// A record that is there, and whether readers see it. Those of a stream come in order.
    pub(super) fn count(
        &mut self,
        shard: ShardId,
        stream: StreamId,
        offset: u64,
        tag: u8,
        payload: &[u8],
    ) -> bool {
        if self.kept_of == Some((shard, stream)) {
            self.kept.insert(offset, (tag, payload.to_vec()));
        }
        let view = self.streams.entry((shard, stream)).or_default();
        let bytes = payload.len() as u64;
        if offset < view.start {
            view.dead_bytes += bytes;
            if offset < view.erased {
                view.unerased_bytes += bytes;
            }
            return false;
        }
        let expected = view.expected.max(view.start);
        view.records += 1;
        view.bytes += bytes;
        view.expected = view.expected.max(offset.saturating_add(1));
        if offset > expected {
            self.miss(shard, stream, expected, offset - 1);
        }
        true
    }

    /// Hands everything over; what a stream should have at its end is missing too.
    pub(super) fn finish(mut self, found: &mut Inspection) {
        let short: Vec<_> = self
            .streams
            .iter()
            .filter(|(_, view)| view.expected.max(view.start) < view.next)
            .map(|(key, view)| (*key, view.expected.max(view.start), view.next - 1))
            .collect();
        for ((shard, stream), first, last) in short {
            self.miss(shard, stream, first, last);
        }
        found.streams = self.streams;
        found.kept = self.kept;
        found.missing = self.missing;
    }

    /// Adds a gap, unless there are very many.
    fn miss(&mut self, shard: ShardId, stream: StreamId, first: u64, last: u64) {
        if self.missing.len() < MISSING_MAX {
            self.missing.push(Missing {
                shard,
                stream,
                first,
                last,
            });
        }
    }
}
