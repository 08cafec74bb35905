//! The table of all streams, combined from the extents and the line.
//!
//! It is filled in two passes. The first collects the starts and ends of streams, of which the
//! largest count. The second visits all records in order, counts them as alive or dead, and looks
//! for gaps.

use std::collections::BTreeMap;

use journal::extent::Entry;
use journal::record::{RecordKind, RecordView};
use journal::{ShardId, StreamId};

use super::{Inspection, MissingRecords, StreamView};

/// Gaps listed at most.
const MISSING_MAX: usize = 256;

/// All streams, the records of the requested stream, and missing records.
#[derive(Debug)]
pub(super) struct Table {
    streams: BTreeMap<(ShardId, StreamId), StreamView>,
    requested: Option<StreamId>,
    records: BTreeMap<(ShardId, u64), (u8, Vec<u8>)>,
    missing: Vec<MissingRecords>,
}

impl Table {
    pub(super) fn new(requested: Option<StreamId>) -> Self {
        Self {
            streams: BTreeMap::new(),
            requested,
            records: BTreeMap::new(),
            missing: Vec::new(),
        }
    }

    /// Adds the state in an extent's stream table.
    pub(super) fn learn_entry(&mut self, shard: ShardId, entry: &Entry) {
        let stream = self.streams.entry((shard, entry.stream)).or_default();
        stream.start = stream.start.max(entry.start);
        stream.erased = stream.erased.max(entry.erased);
        stream.next = stream.next.max(entry.next).max(stream.start);
    }

    /// Adds the start or end that a record of the line implies.
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

    /// Adds the states of another table.
    pub(super) fn absorb(&mut self, bounds: Table) {
        for (key, bound) in bounds.streams {
            let stream = self.streams.entry(key).or_default();
            stream.start = stream.start.max(bound.start);
            stream.erased = stream.erased.max(bound.erased);
            stream.next = stream.next.max(bound.next).max(stream.start);
        }
    }

    /// Counts a record. Returns true if readers see it. The records of a stream must come in order.
    pub(super) fn count(
        &mut self,
        shard: ShardId,
        stream: StreamId,
        offset: u64,
        tag: u8,
        payload: &[u8],
    ) -> bool {
        if self.requested == Some(stream) {
            self.records
                .insert((shard, offset), (tag, payload.to_vec()));
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

    /// Moves the results to `found`. Records missing at the end of a stream are reported too.
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
        found.records = self.records;
        found.missing = self.missing;
    }

    /// Adds a gap, unless there are too many.
    fn miss(&mut self, shard: ShardId, stream: StreamId, first: u64, last: u64) {
        if self.missing.len() < MISSING_MAX {
            self.missing.push(MissingRecords {
                shard,
                stream,
                first,
                last,
            });
        }
    }
}
