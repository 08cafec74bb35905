//! Reading a stream from memory, segments and extents.
//!
//! Only committed records are returned. Every byte was checked by a CRC on this read, or has been
//! in memory since it was written; [`locate`] leaves long records in their files. A segment may be
//! filed and recycled while it is being read. Then the check fails, and the read starts over and finds
//! the extent.

mod located;

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
pub(crate) use located::locate;

use crate::block::{BLOCK_HEADER_SIZE, BlockHeader};
use crate::extent::{ExtentError, ExtentSet};
use crate::record::{self, RecordKind, RecordView};
use crate::shard::{Shard, State};
use crate::shared::Shared;
use crate::stream::Stream;
use crate::tail::BlockLocation;
use crate::{Index, Position, StreamId};

/// Limits of a read. At least one record is returned, if there is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Number of records.
    pub records: usize,
    /// Bytes of payloads.
    pub bytes: usize,
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset of the record in the stream.
    pub offset: u64,
    /// Time of its block in milliseconds since 1970: the time of its append, or a little later.
    pub time_ms: u64,
    /// The caller's tag.
    pub tag: u8,
    /// A slice of the block or page that contains it. Copy it to hold it for long.
    pub payload: Bytes,
}

/// Result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<R = Record> {
    /// Records in ascending order, without a gap except where a loss was accepted.
    pub records: Vec<R>,
    /// Start of the stream.
    pub start: u64,
    /// End of the stream for readers. To follow the stream, read from the offset after the last
    /// record.
    pub next_durable: u64,
}

/// A read that could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The requested records were trimmed.
    #[error("the stream starts at {start}")]
    Trimmed {
        /// Offset of the first record.
        start: u64,
    },
    /// A block does not match its checksum.
    #[error("the block at position {} is damaged", position.0)]
    Damaged {
        /// Position of the block.
        position: Position,
    },
    /// An extent could not be read, or is damaged.
    #[error(transparent)]
    Extent(#[from] ExtentError),
    /// An I/O error.
    #[error("cannot read the write-ahead log: {0}")]
    Io(#[from] std::io::Error),
}

/// Locations of the wanted records, taken under the shard's lock.
struct Plan {
    start: u64,
    next_durable: u64,
    /// Offset at which unfiled records begin. Records before it are in the extents.
    unfiled: u64,
    extents: Arc<ExtentSet>,
    runs: Vec<PlannedRun>,
}

struct PlannedRun {
    index: Index,
    place: usize,
    first: u64,
    /// Bytes of all payloads.
    bytes: u64,
    /// Offset after the last one in the block.
    end: u64,
    location: BlockLocation,
    /// The body, if it is in memory.
    body: Option<Bytes>,
}

/// Reads records from an offset on.
pub(crate) fn read(
    shared: &Shared,
    shard: &Shard,
    stream: StreamId,
    from: u64,
    limit: ReadLimit,
) -> Result<Read, ReadError> {
    read_with(
        shared,
        shard,
        stream,
        from,
        limit,
        |body, run, collector| {
            collect_run(body, stream, from, run, collector);
        },
    )
}

/// Reads like [`read`], and passes the records of unfiled blocks to `visit`.
pub(crate) fn read_and_visit(
    shared: &Shared,
    shard: &Shard,
    stream: StreamId,
    from: u64,
    limit: ReadLimit,
    visit: &mut dyn FnMut(RecordView<'_>, u64),
) -> Result<Read, ReadError> {
    read_with(
        shared,
        shard,
        stream,
        from,
        limit,
        |body, run, collector| {
            collect_and_visit(body, stream, from, run, collector, visit);
        },
    )
}

/// Reads records from an offset on. `collect` takes those of a run from the body of its block.
fn read_with(
    shared: &Shared,
    shard: &Shard,
    stream: StreamId,
    from: u64,
    limit: ReadLimit,
    mut collect: impl FnMut(&Bytes, &PlannedRun, &mut RecordCollector<Record>),
) -> Result<Read, ReadError> {
    'again: loop {
        let plan = plan(&shard.state.lock(), stream, from, limit);
        if from < plan.start {
            return Err(ReadError::Trimmed { start: plan.start });
        }
        let mut collector = RecordCollector::new(limit);
        if from < plan.unfiled {
            let _ended = plan.extents.read(shard.id, stream, from, &mut |filed| {
                if filed.offset >= plan.unfiled {
                    return ControlFlow::Break(());
                }
                let size = filed.payload.len();
                collector.push(
                    size,
                    Record {
                        offset: filed.offset,
                        time_ms: filed.time_ms,
                        tag: filed.tag,
                        payload: filed.payload,
                    },
                )
            })?;
        }
        for run in &plan.runs {
            if collector.is_full() {
                break;
            }
            let Some(body) = body_of(shared, shard, run)? else {
                continue 'again;
            };
            collect(&body, run, &mut collector);
        }
        return Ok(Read {
            records: collector.records,
            start: plan.start,
            next_durable: plan.next_durable,
        });
    }
}

/// Reads like [`read`] but without the disk. Returns `None` if memory does not hold enough.
pub(crate) fn read_in_memory(
    shard: &Shard,
    stream: StreamId,
    from: u64,
    limit: ReadLimit,
) -> Result<Option<Read>, ReadError> {
    let plan = plan(&shard.state.lock(), stream, from, limit);
    if from < plan.start {
        return Err(ReadError::Trimmed { start: plan.start });
    }
    let bodies = plan.runs.iter().map(|run| Some((run, run.body.as_ref()?)));
    let Some(bodies) = bodies.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    if from < plan.unfiled {
        return Ok(None);
    }
    let mut collector = RecordCollector::new(limit);
    for (run, body) in bodies {
        if collector.is_full() {
            break;
        }
        collect_run(body, stream, from, run, &mut collector);
    }
    Ok(Some(Read {
        records: collector.records,
        start: plan.start,
        next_durable: plan.next_durable,
    }))
}

fn plan(state: &State, stream: StreamId, from: u64, limit: ReadLimit) -> Plan {
    let none = Stream::default();
    let entry = state.streams.get(&stream).unwrap_or(&none);
    // The first runs may be filed already and not dropped yet; the extents have them.
    let (unfiled, runs) = entry.runs_from(state.tail.first(), from);
    let mut plan = Plan {
        start: entry.start,
        next_durable: entry.next_at(state.committed()),
        unfiled: unfiled.unwrap_or(entry.next),
        extents: state.extents.clone(),
        runs: Vec::new(),
    };
    let (mut records, mut bytes) = (0, 0);
    let mut runs = runs.peekable();
    while let Some(run) = runs.next() {
        let end = runs.peek().map_or(entry.next, |next| next.first);
        let is_wanted = records < limit.records.max(1) as u64 && bytes < limit.bytes.max(1) as u64;
        let Some(location) = state.tail.location(run.index) else {
            break;
        };
        if run.index > state.committed() || !is_wanted {
            break;
        }
        if end <= from {
            continue;
        }
        if run.first >= from {
            records += end - run.first;
            bytes += u64::from(run.bytes);
        }
        plan.runs.push(PlannedRun {
            index: run.index,
            place: run.place as usize,
            first: run.first,
            bytes: run.bytes.into(),
            end,
            location,
            body: state.tail.body(run.index),
        });
    }
    plan
}

/// Returns the body of a run's block, which it reads if it is not in memory; `None` if the segment
/// was filed meanwhile.
fn body_of(shared: &Shared, shard: &Shard, run: &PlannedRun) -> Result<Option<Bytes>, ReadError> {
    if let Some(body) = &run.body {
        return Ok(Some(body.clone()));
    }
    match read_block(shared, run.location)? {
        Some(body) => Ok(Some(body)),
        None if shard.state.lock().tail.location(run.index).is_none() => Ok(None),
        None => Err(ReadError::Damaged {
            position: run.location.position,
        }),
    }
}

/// Reads the body of a block; `None` if it is not whole.
pub(crate) fn read_block(
    shared: &Shared,
    location: BlockLocation,
) -> std::io::Result<Option<Bytes>> {
    let block = read_whole_block(shared, location)?;
    Ok(block.map(|(_, body)| body))
}

/// Reads a block's header and body; `None` if it is not whole.
pub(crate) fn read_whole_block(
    shared: &Shared,
    location: BlockLocation,
) -> std::io::Result<Option<(BlockHeader, Bytes)>> {
    let segment = shared.segments.lock().find(location.position).cloned();
    let Some(segment) = segment else {
        return Ok(None);
    };
    let mut block = vec![0; location.length as usize];
    let offset = location.position.0 - segment.header.base.0;
    segment.file.read_at(&mut block, offset)?;
    let header = BlockHeader::parse(&block).filter(|header| {
        header.position == location.position
            && header.epoch == segment.header.epoch
            && header.is_whole(&block, segment.header.seed())
    });
    Ok(header.map(|header| (header, Bytes::from(block).slice(BLOCK_HEADER_SIZE..))))
}

fn collect_run<R: From<Record>>(
    body: &Bytes,
    stream: StreamId,
    from: u64,
    run: &PlannedRun,
    collector: &mut RecordCollector<R>,
) {
    let mut at = run.place;
    while let Ok(record) = record::decode(body, at) {
        at += record.size();
        if record.stream != stream || record.kind != RecordKind::Data {
            continue;
        }
        let offset = record.offset;
        if offset >= from {
            let record = Record {
                offset: record.offset,
                time_ms: run.location.time_ms,
                tag: record.tag,
                payload: body.slice(at - record.bytes.len()..at),
            };
            let flow = collector.push(record.payload.len(), record.into());
            if flow.is_break() {
                return;
            }
        }
        if offset + 1 >= run.end {
            return;
        }
    }
}

/// Collects the records of a stream, and passes all records of the block from the first collected one
/// on to `visit`, up to the next record of the stream that is not collected.
fn collect_and_visit(
    body: &Bytes,
    stream: StreamId,
    from: u64,
    run: &PlannedRun,
    collector: &mut RecordCollector<Record>,
    visit: &mut dyn FnMut(RecordView<'_>, u64),
) {
    let time_ms = run.location.time_ms;
    let mut at = run.place;
    let mut is_begun = false;
    while let Ok(record) = record::decode(body, at) {
        at += record.size();
        if record.kind != RecordKind::Data {
            continue;
        }
        if record.stream == stream && record.offset >= from {
            is_begun = true;
            let count = collector.records.len();
            let found = Record {
                offset: record.offset,
                time_ms,
                tag: record.tag,
                payload: body.slice(at - record.bytes.len()..at),
            };
            if collector.is_full() || collector.push(record.bytes.len(), found).is_break() {
                // The limit is reached; the record that reaches it is collected.
                if collector.records.len() == count {
                    return;
                }
            }
        }
        if is_begun {
            visit(record, time_ms);
        }
    }
}

/// Collects records up to a limit.
struct RecordCollector<R> {
    records: Vec<R>,
    limit: ReadLimit,
    bytes: usize,
}

impl<R> RecordCollector<R> {
    fn new(limit: ReadLimit) -> RecordCollector<R> {
        RecordCollector {
            records: Vec::new(),
            limit,
            bytes: 0,
        }
    }

    fn is_full(&self) -> bool {
        !self.records.is_empty()
            && (self.records.len() >= self.limit.records || self.bytes >= self.limit.bytes)
    }

    /// Adds a record with a payload of `size` bytes.
    fn push(&mut self, size: usize, record: R) -> ControlFlow<()> {
        let bytes = self.bytes + size;
        if !self.records.is_empty()
            && (self.records.len() >= self.limit.records || bytes > self.limit.bytes)
        {
            // Later records must not be taken either: a read has no gap.
            self.bytes = self.limit.bytes;
            return ControlFlow::Break(());
        }
        self.bytes = bytes;
        self.records.push(record);
        match self.is_full() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
