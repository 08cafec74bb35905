//! The set of all extents of a journal, by shard, oldest first.
//!
//! A set is immutable: filing and merging create the next one, and a reader holds the one that it
//! began with. Within a shard the extents cover consecutive ranges of the line, so a stream's
//! records ascend from extent to extent.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::cursor::Entries;
use super::located::{LocatedRecord, Reach, Visited};
use super::{Entry, Extent, ExtentError, Identity, RetainedSegments};
use crate::disk::Disk;
use crate::{ShardId, StreamId};

/// A record read from an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiledRecord {
    /// Offset of the record in the stream.
    pub offset: u64,
    /// Time of the record's block, in milliseconds since 1970.
    pub time_ms: u64,
    /// The caller's tag.
    pub tag: u8,
    /// A slice of the page or piece. Copy it to hold it for long.
    pub payload: Bytes,
}

/// State of a stream, combined from all extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSummary {
    /// Id of the stream.
    pub stream: StreamId,
    /// Start of the stream for readers.
    pub start: u64,
    /// The offset after the last one that was assigned.
    pub next: u64,
    /// Bytes of records below this offset must leave the disk.
    pub erased: u64,
    /// Bytes of payloads in all extents, including those below the start.
    pub bytes: u64,
    /// Some of the bytes to erase are still on disk.
    pub unerased: bool,
}

/// All extents at one moment.
#[derive(Clone, Debug, Default)]
pub struct ExtentSet {
    shards: Vec<Vec<Arc<Extent>>>,
}

impl ExtentSet {
    /// Opens the extents of every shard. Within a shard, they must be oldest first.
    pub fn open<'a>(
        disk: &dyn Disk,
        shards: impl IntoIterator<Item = &'a [Identity]>,
    ) -> Result<ExtentSet, ExtentError> {
        let mut set = ExtentSet::default();
        let mut segments = RetainedSegments::default();
        for extents in shards {
            let open =
                |identity: &Identity| Extent::open(disk, *identity, &mut segments).map(Arc::new);
            set.shards
                .push(extents.iter().map(open).collect::<Result<_, _>>()?);
        }
        Ok(set)
    }

    /// Returns the extents of a shard, oldest first.
    pub fn shard(&self, shard: ShardId) -> &[Arc<Extent>] {
        self.shards
            .get(usize::from(shard.0))
            .map_or(&[], Vec::as_slice)
    }

    /// Iterates over all extents.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Extent>> {
        self.shards.iter().flatten()
    }

    /// Returns the number of extents.
    pub fn count(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }

    /// Returns the bytes of all files and of all pieces of segments.
    pub fn size(&self) -> u64 {
        self.iter().map(|extent| extent.data_size()).sum()
    }

    /// Returns the sequences of the segments to which extents refer.
    pub fn segments(&self) -> BTreeSet<u64> {
        let segments = self.iter().filter_map(|extent| extent.segment());
        segments.map(|segment| segment.sequence).collect()
    }

    /// Returns the number of open files.
    pub fn files(&self) -> usize {
        let own = self.iter().filter(|extent| extent.segment().is_none());
        own.count() + self.segments().len()
    }

    /// Returns the bytes of memory of all indexes.
    pub fn memory(&self) -> usize {
        self.shards
            .iter()
            .flatten()
            .map(|extent| extent.memory())
            .sum()
    }

    /// Returns the set in which `extent` takes the place of the shard's extents numbered in
    /// `replaced`. If none is named, it is added at the end.
    pub fn with(&self, shard: ShardId, replaced: &[u64], extent: Arc<Extent>) -> ExtentSet {
        let mut next = self.clone();
        let index = usize::from(shard.0);
        if next.shards.len() <= index {
            next.shards.resize(index + 1, Vec::new());
        }
        let extents = &mut next.shards[index];
        let replaces = |old: &Arc<Extent>| replaced.contains(&old.identity().number);
        let place = extents.iter().position(replaces).unwrap_or(extents.len());
        extents.retain(|old| !replaces(old));
        extents.insert(place, extent);
        next
    }

    /// Visits a stream's records from an offset on, in order, until `visit` breaks.
    pub fn read(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        visit: &mut dyn FnMut(FiledRecord) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ExtentError> {
        for extent in self.extents_from(shard, stream, from) {
            let flow = extent.read(stream, from, &mut |page, item| {
                visit(FiledRecord {
                    offset: item.offset,
                    time_ms: item.time_ms,
                    tag: item.tag,
                    payload: page.slice(item.payload),
                })
            })?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits a stream's records like [`ExtentSet::read`]; long ones stay in their files.
    pub fn locate(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        reach: Reach,
        visit: &mut dyn FnMut(LocatedRecord) -> ControlFlow<()>,
    ) -> Result<Visited, ExtentError> {
        for extent in self.extents_from(shard, stream, from) {
            let visited = extent.locate(stream, from, reach, visit)?;
            if visited != Visited::All {
                return Ok(visited);
            }
        }
        Ok(Visited::All)
    }

    /// Returns the extents that may have records of a stream from an offset on.
    fn extents_from(&self, shard: ShardId, stream: StreamId, from: u64) -> &[Arc<Extent>] {
        let extents = self.shard(shard);
        // Extents before one that has this offset, or an earlier one, hold only earlier records.
        let begin = extents.iter().rposition(|extent| {
            extent
                .index
                .first(stream)
                .is_some_and(|first| first <= from)
        });
        &extents[begin.unwrap_or(0)..]
    }

    /// Iterates over all streams of a shard, ascending.
    pub fn streams(&self, shard: ShardId) -> Result<Streams, ExtentError> {
        let tables = self
            .shard(shard)
            .iter()
            .map(|extent| Entries::new(extent.clone()));
        Ok(Streams {
            tables: tables.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the bytes of a stream's records from an offset on.
    pub fn bytes(&self, shard: ShardId, stream: StreamId, from: u64) -> Result<u64, ExtentError> {
        let mut bytes = 0;
        for extent in self.shard(shard) {
            if let Some(entry) = extent.entry(stream)?.filter(|entry| from < entry.next) {
                bytes += entry.bytes;
                if from > entry.first {
                    bytes -= extent.bytes_below(stream, from)?;
                }
            }
        }
        Ok(bytes)
    }

    /// Returns the offset of the first record from `from` on with a time of `time_ms` or later.
    pub fn offset_for_time(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        time_ms: u64,
    ) -> Result<Option<u64>, ExtentError> {
        for extent in self.shard(shard) {
            if let Some(offset) = extent.offset_for_time(stream, from, time_ms)? {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    /// Returns the smallest offset from which on the stream has at most `bytes`; `None` if it has
    /// no more in total.
    pub fn offset_for_bytes(
        &self,
        shard: ShardId,
        stream: StreamId,
        bytes: u64,
    ) -> Result<Option<u64>, ExtentError> {
        let mut left = bytes;
        for extent in self.shard(shard).iter().rev() {
            let Some(entry) = extent.entry(stream)? else {
                continue;
            };
            match left.checked_sub(entry.bytes) {
                Some(rest) => left = rest,
                None => {
                    return extent
                        .offset_behind_bytes(&entry, entry.bytes - left)
                        .map(Some);
                }
            }
        }
        Ok(None)
    }
}

/// Iterator over a shard's streams, ascending, each combined from all extents.
#[derive(Debug)]
pub struct Streams {
    tables: Vec<Entries>,
}

impl Streams {
    fn step(&mut self) -> Result<Option<StreamSummary>, ExtentError> {
        let heads = self.tables.iter().filter_map(|table| table.peek());
        let Some(stream) = heads.map(|entry| entry.stream).min() else {
            return Ok(None);
        };
        let (mut known, mut bytes, mut first) = (Entry::new(stream), 0, u64::MAX);
        for table in &mut self.tables {
            let Some(entry) = table.peek().filter(|entry| entry.stream == stream) else {
                continue;
            };
            known.learn(entry);
            if entry.records > 0 {
                bytes += entry.bytes;
                first = first.min(entry.first);
            }
            table.advance()?;
        }
        let Entry {
            start,
            next,
            erased,
            ..
        } = known;
        let unerased = first < erased;
        Ok(Some(StreamSummary {
            stream,
            start,
            next,
            erased,
            bytes,
            unerased,
        }))
    }
}

impl Iterator for Streams {
    type Item = Result<StreamSummary, ExtentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.tables.clear();
        }
        step.transpose()
    }
}
