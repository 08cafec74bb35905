//! Reads many streams of a shard in one pass.
//!
//! The filed part of a stream is contiguous. The unfiled part is in blocks with records of many
//! streams: reading stream by stream would read a block once for each of its streams. This module
//! reads each block once. Blocks are located a window at a time, because writers of the shard wait
//! meanwhile.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::extent::ExtentSet;
use crate::read::{ReadError, Record, read_block};
use crate::record::{self, RecordKind};
use crate::shard::{Shard, State};
use crate::stream::Stream;
use crate::tail::BlockLocation;
use crate::{Index, Journal, ShardId, StreamId};

/// Streams to read, each with the offset to begin at.
pub type Wanted = BTreeMap<StreamId, u64>;

/// Number of consecutive blocks that are located at once.
const WINDOW_LENGTH: usize = 512;

/// Locations of the next wanted records, taken under the shard's lock.
struct Plan {
    extents: Arc<ExtentSet>,
    /// For each stream, the offset at which its unfiled records begin.
    unfiled: Vec<(StreamId, u64)>,
    /// The blocks of the window with wanted records.
    blocks: Vec<Block>,
    /// Wanted records are in blocks after the window.
    has_more: bool,
}

/// A block with records of at least one wanted stream.
struct Block {
    index: Index,
    location: BlockLocation,
    /// The body, if it is in memory.
    body: Option<Bytes>,
}

impl Journal {
    /// Passes the records of the wanted streams that are durable (committed) now to `visit`, each
    /// stream's records in order. `wanted` is advanced along the way: at the end it has, for each
    /// stream, the offset after the last visited record. Writers of the shard wait while the streams
    /// are looked up, so beside a busy shard few streams should be wanted at a time.
    pub fn read_many<E: From<ReadError>>(
        &self,
        shard: ShardId,
        wanted: &mut Wanted,
        mut visit: impl FnMut(StreamId, Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let target = self.shared().shard(shard);
        let last = target.state.lock().committed();
        loop {
            let plan = plan(&target.state.lock(), wanted, last);
            for (stream, unfiled) in &plan.unfiled {
                read_filed(
                    &plan.extents,
                    shard,
                    (*stream, *unfiled),
                    wanted,
                    &mut visit,
                )?;
            }
            let read = self.read_line(target, &plan.blocks, wanted, &mut visit)?;
            if read.is_continue() && !plan.has_more {
                return Ok(());
            }
        }
    }

    /// Reads the unfiled part. Breaks off at a block that has been filed meanwhile.
    fn read_line<E: From<ReadError>>(
        &self,
        shard: &Shard,
        blocks: &[Block],
        wanted: &mut Wanted,
        visit: &mut impl FnMut(StreamId, Record) -> Result<(), E>,
    ) -> Result<ControlFlow<()>, E> {
        for block in blocks {
            let body = match &block.body {
                Some(body) => Some(body.clone()),
                None => read_block(self.shared(), block.location).map_err(ReadError::from)?,
            };
            match body {
                Some(body) => show(&body, block.location, wanted, visit)?,
                None if shard.state.lock().tail.location(block.index).is_none() => {
                    return Ok(ControlFlow::Break(()));
                }
                None => {
                    let position = block.location.position;
                    return Err(ReadError::Damaged { position }.into());
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Locates the first wanted records in blocks up to `last`. Advances `wanted` to the start of streams
/// that were trimmed.
fn plan(state: &State, wanted: &mut Wanted, last: Index) -> Plan {
    let mut unfiled = Vec::new();
    let mut begin = last;
    for (stream, next) in wanted.iter_mut() {
        let Some(entry) = state.streams.get(stream) else {
            continue;
        };
        *next = (*next).max(entry.start);
        // The first runs may be filed already and not dropped yet; the extents have them.
        let (first, _) = entry.runs_from(state.tail.first(), *next);
        unfiled.push((*stream, first.unwrap_or(entry.next)));
        let first_wanted = wanted_indexes(state, entry, *next, last).next();
        begin = begin.min(first_wanted.unwrap_or(last));
    }
    let mut is_wanted = [false; WINDOW_LENGTH];
    let mut has_more = false;
    for (stream, next) in wanted.iter() {
        let Some(entry) = state.streams.get(stream) else {
            continue;
        };
        for index in wanted_indexes(state, entry, *next, last) {
            let Some(is_wanted) = is_wanted.get_mut((index.0 - begin.0) as usize) else {
                has_more = true;
                break;
            };
            *is_wanted = true;
        }
    }
    let block = |(index, is_wanted): (u64, bool)| {
        let index = Index(index);
        if !is_wanted {
            return None;
        }
        Some(Block {
            index,
            location: state.tail.location(index)?,
            body: state.tail.body(index),
        })
    };
    Plan {
        extents: state.extents.clone(),
        unfiled,
        blocks: (begin.0..).zip(is_wanted).filter_map(block).collect(),
        has_more,
    }
}

/// Returns the unfiled blocks up to `last` with records of a stream from the offset `from` on.
fn wanted_indexes(
    state: &State,
    entry: &Stream,
    from: u64,
    last: Index,
) -> impl Iterator<Item = Index> {
    let (_, runs) = entry.runs_from(state.tail.first(), from);
    let mut runs = runs.peekable();
    let ends = std::iter::from_fn(move || {
        let run = runs.next()?;
        let end = runs.peek().map_or(entry.next, |next| next.first);
        Some((run.index, end))
    });
    let wanted = ends.filter(move |(_, end)| *end > from);
    wanted
        .map(|(index, _)| index)
        .take_while(move |index| *index <= last)
}

fn read_filed<E: From<ReadError>>(
    extents: &ExtentSet,
    shard: ShardId,
    (stream, unfiled): (StreamId, u64),
    wanted: &mut Wanted,
    visit: &mut impl FnMut(StreamId, Record) -> Result<(), E>,
) -> Result<(), E> {
    let Some(next) = wanted.get_mut(&stream) else {
        return Ok(());
    };
    if *next >= unfiled {
        return Ok(());
    }
    let mut shown = Ok(());
    let read = extents.read(shard, stream, *next, &mut |filed| {
        if filed.offset >= unfiled {
            return ControlFlow::Break(());
        }
        *next = filed.offset + 1;
        let record = Record {
            offset: filed.offset,
            time_ms: filed.time_ms,
            tag: filed.tag,
            payload: filed.payload,
        };
        match visit(stream, record) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                shown = Err(error);
                ControlFlow::Break(())
            }
        }
    });
    shown?;
    read.map(drop)
        .map_err(|error| ReadError::from(error).into())
}

fn show<E>(
    body: &Bytes,
    location: BlockLocation,
    wanted: &mut Wanted,
    visit: &mut impl FnMut(StreamId, Record) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = 0;
    while let Ok(record) = record::decode(body, at) {
        at += record.size();
        let is_data = record.kind == RecordKind::Data;
        let next = wanted.get_mut(&record.stream).filter(|_| is_data);
        let Some(next) = next.filter(|next| record.offset >= **next) else {
            continue;
        };
        *next = record.offset + 1;
        let shown = Record {
            offset: record.offset,
            time_ms: location.time_ms,
            tag: record.tag,
            payload: body.slice(at - record.bytes.len()..at),
        };
        visit(record.stream, shown)?;
    }
    Ok(())
}
