//! Reads that leave long records in their files.
//!
//! Blocks of the line were checked or written by this process, so those that are in the page cache are
//! not read again: only the headers of their records are. A segment is found while it is not filed, and
//! is not recycled as long as its file is held, so what is located in it does not change.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::{
    PlannedRun, Read, ReadError, ReadLimit, Record, RecordCollector, body_of, collect_run, plan,
};
use crate::StreamId;
use crate::block::BLOCK_HEADER_SIZE;
use crate::disk::{File, FileRange, StoredBytes};
use crate::extent::{
    HEAD_SIZE, LOCATED_SIZE_MIN, LocatedRecord, Reach, Visited, head_of, is_cached,
};
use crate::record::{self, RECORD_HEADER_SIZE, RecordKind};
use crate::shard::Shard;
use crate::shared::Shared;

/// Reads like [`super::read`], but leaves long records in their files. Returns `None` if the records
/// are not within reach.
pub(crate) fn locate(
    shared: &Shared,
    shard: &Shard,
    stream: StreamId,
    from: u64,
    limit: ReadLimit,
    reach: Reach,
) -> Result<Option<Read<LocatedRecord>>, ReadError> {
    'plan: loop {
        let plan = plan(&shard.state.lock(), stream, from, limit);
        if from < plan.start {
            return Err(ReadError::Trimmed { start: plan.start });
        }
        let mut collector = RecordCollector::new(limit);
        if from < plan.unfiled {
            let extents = &plan.extents;
            let visited = extents.locate(shard.id, stream, from, reach, &mut |located| {
                if located.offset >= plan.unfiled {
                    return ControlFlow::Break(());
                }
                collector.push(located.payload.size(), located)
            })?;
            if visited == Visited::OutOfReach {
                return Ok(None);
            }
        }
        for run in &plan.runs {
            if collector.is_full() {
                break;
            }
            let room = limit.bytes.saturating_sub(collector.bytes);
            if let Some(located) = locate_run(shared, stream, from, run, room) {
                for record in located {
                    if collector.push(record.payload.size(), record).is_break() {
                        break;
                    }
                }
                continue;
            }
            if reach == Reach::Memory && run.body.is_none() {
                return Ok(None);
            }
            match body_of(shared, shard, run)? {
                Some(body) => collect_run(&body, stream, from, run, &mut collector),
                None => continue 'plan,
            }
        }
        return Ok(Some(Read {
            records: collector.records,
            start: plan.start,
            next_durable: plan.next_durable,
        }));
    }
}

/// Locates a stream's records in a block, from an offset on, until they have `room` bytes. Returns
/// `None` if the block is in memory, if its records are short, or if it is not in the page cache.
fn locate_run(
    shared: &Shared,
    stream: StreamId,
    from: u64,
    run: &PlannedRun,
    room: usize,
) -> Option<Vec<LocatedRecord>> {
    let count = run.end - run.first;
    if run.body.is_some() || run.bytes < count * LOCATED_SIZE_MIN as u64 {
        return None;
    }
    let position = run.location.position;
    let segment = shared.segments.lock().find(position).cloned()?;
    let body = position.0 - segment.header.base.0 + BLOCK_HEADER_SIZE as u64;
    let length = (run.location.length as usize).checked_sub(BLOCK_HEADER_SIZE)?;
    // Records of many other streams may be between: then it costs less to read the block.
    let mut looks = 8 + 4 * count;
    let (mut found, mut size, mut at) = (Vec::new(), 0, run.place);
    while at < length {
        looks = looks.checked_sub(1)?;
        let mut window = [0; RECORD_HEADER_SIZE + HEAD_SIZE];
        let window = &mut window[..(length - at).min(RECORD_HEADER_SIZE + HEAD_SIZE)];
        let begin = body + at as u64;
        if !segment.file.read_cached(window, begin).unwrap_or(false) {
            return None;
        }
        let header = record::decode_header(window, 0).ok()?;
        let next = at + RECORD_HEADER_SIZE + header.length;
        if next > length {
            return None;
        }
        at = next;
        if header.stream != stream || header.kind != RecordKind::Data {
            continue;
        }
        if header.offset >= from {
            let head = &window[RECORD_HEADER_SIZE..];
            found.push(LocatedRecord {
                offset: header.offset,
                time_ms: run.location.time_ms,
                tag: header.tag,
                head: head_of(&head[..header.length.min(HEAD_SIZE)]),
                payload: payload(
                    &segment.file,
                    begin + RECORD_HEADER_SIZE as u64,
                    header.length,
                )?,
            });
            size += header.length;
        }
        if header.offset + 1 >= run.end || size >= room {
            break;
        }
    }
    Some(found)
}

/// Returns the bytes of a payload, or their place if it is long; `None` if they are not in the page
/// cache.
fn payload(file: &Arc<dyn File>, offset: u64, size: usize) -> Option<StoredBytes> {
    if size < LOCATED_SIZE_MIN {
        let mut bytes = vec![0; size];
        let is_read = file.read_cached(&mut bytes, offset).unwrap_or(false);
        return is_read.then(|| Bytes::from(bytes).into());
    }
    is_cached(&**file, offset, size).then(|| {
        StoredBytes::File(FileRange {
            file: file.clone(),
            offset,
            size,
        })
    })
}

impl From<Record> for LocatedRecord {
    fn from(record: Record) -> LocatedRecord {
        LocatedRecord {
            offset: record.offset,
            time_ms: record.time_ms,
            tag: record.tag,
            head: head_of(&record.payload),
            payload: record.payload.into(),
        }
    }
}
