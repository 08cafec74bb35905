//! Reads many streams of a shard in one pass.
//!
//! The filed part of a stream is contiguous. The unfiled part is in blocks with records of many
//! streams: reading stream by stream would read a block once for each of its streams. This module
//! reads each block once, as a start of the node should.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::extent::ExtentSet;
use crate::read::{ReadError, Record, read_block};
use crate::record::{self, RecordKind};
use crate::shard::{Shard, State};
use crate::tail::BlockLocation;
use crate::{Index, Journal, ShardId, StreamId};

/// Streams to read, each with the offset to begin at.
pub type Wanted = BTreeMap<StreamId, u64>;

/// Locations of the wanted records, taken under the shard's lock.
struct Plan {
    extents: Arc<ExtentSet>,
    /// For each stream, the offset at which its unfiled records begin.
    unfiled: Vec<(StreamId, u64)>,
    blocks: Vec<Block>,
}

/// A block with records of at least one wanted stream.
struct Block {
    index: Index,
    location: BlockLocation,
    /// The body, if it is in memory.
    body: Option<Bytes>,
}

impl Journal {
    /// Passes all durable (committed) records of the wanted streams to `visit`, each stream's
    /// records in order. `wanted` is advanced along the way: at the end it has, for each stream,
    /// the offset after the last visited record.
    pub fn read_many<E: From<ReadError>>(
        &self,
        shard: ShardId,
        wanted: &mut Wanted,
        mut visit: impl FnMut(StreamId, Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let target = self.shared().shard(shard);
        loop {
            let plan = plan(&target.state.lock(), wanted);
            for (stream, unfiled) in &plan.unfiled {
                read_filed(
                    &plan.extents,
                    shard,
                    (*stream, *unfiled),
                    wanted,
                    &mut visit,
                )?;
            }
            if self
                .read_line(target, &plan.blocks, wanted, &mut visit)?
                .is_continue()
            {
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

/// Locates the wanted records. Advances `wanted` to the start of streams that were trimmed.
fn plan(state: &State, wanted: &mut Wanted) -> Plan {
    let committed = state.committed();
    let (mut unfiled, mut blocks) = (Vec::new(), BTreeSet::new());
    for (stream, next) in wanted {
        let Some(entry) = state.streams.get(stream) else {
            continue;
        };
        *next = (*next).max(entry.start);
        // The first runs may be filed already and not dropped yet; the extents have them.
        let (first, runs) = entry.runs_from(state.tail.first(), *next);
        unfiled.push((*stream, first.unwrap_or(entry.next)));
        let indexes = runs.map(|run| run.index);
        blocks.extend(indexes.take_while(|index| *index <= committed));
    }
    let block = |index| {
        Some(Block {
            index,
            location: state.tail.location(index)?,
            body: state.tail.body(index),
        })
    };
    Plan {
        extents: state.extents.clone(),
        unfiled,
        blocks: blocks.into_iter().filter_map(block).collect(),
    }
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
