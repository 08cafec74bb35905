//! The records of a partition: snapshots, changes and compactions.
//!
//! ```text
//! PARTITION  records u64 | log start u64 | end u64 | cleaned u64
//!            | count × (epoch i32 | start u64)
//!            | block bytes u64
//!            | count × (record u64 | offset u64 | bytes u64 | timestamp i64 | peak u64)
//!            | count × (producer i64 | epoch i16 | coordinator epoch i32 | last_ms i64
//!                       | transaction u64, its top for none
//!                       | batches u8 × (last sequence i32 | offset u64 | offsets u32 | timestamp i64))
//!            | count × (producer i64 | first u64 | last u64 | stable u64), those that were aborted
//!            | (appended_ms i64 | dated_ms i64) for each block of the index
//! PARTITION_UNDATED  the same without the last line
//! ```
//!
//! Producers are in the order of their ids, so that equal states are equal bytes.

use std::collections::{BTreeMap, HashMap};

use super::Malformed;
use crate::bytes::{Put, Rest};
use crate::epochs::Epochs;
use crate::ids::ProducerId;
use crate::index::{Block, Index, dated_ms};
use crate::partition::{Change, Limits, Partition};
use crate::producers::{Entry, Past, Producers, WINDOW, Window};
use crate::transactions::{Aborted, Transactions};

const LOG_START: u8 = 1;
const LEADER: u8 = 2;
const CLEANED: u8 = 3;
const NO_TRANSACTION: u64 = u64::MAX;

/// A partition as of a number of records of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The first record of the stream that it does not include.
    pub records: u64,
    /// The partition; everything in it is durable.
    pub partition: Partition,
}

/// The place of the batches that a compaction left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// The first of them in the second stream.
    pub first: u64,
    /// The number after the last of them.
    pub end: u64,
    /// The first record of the partition's stream that was not compacted.
    pub rest: u64,
}

impl Compacted {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.first, self.end, self.rest] {
            out.put(number.to_le_bytes());
        }
    }

    /// Decodes the record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "compaction record of a topic");
        let compacted = Self {
            first: rest.u64()?,
            end: rest.u64()?,
            rest: rest.u64()?,
        };
        if compacted.first > compacted.end {
            return Err(rest.malformed());
        }
        rest.end()?;
        Ok(compacted)
    }
}

impl Change {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::LogStart(offset) => {
                out.push(LOG_START);
                out.put(offset.to_le_bytes());
            }
            Self::Leader { epoch, start } => {
                out.push(LEADER);
                out.put(epoch.to_le_bytes());
                out.put(start.to_le_bytes());
            }
            Self::Cleaned(offset) => {
                out.push(CLEANED);
                out.put(offset.to_le_bytes());
            }
        }
    }

    /// Decodes the record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "change of a partition of a topic");
        let change = match rest.u8()? {
            LOG_START => Self::LogStart(rest.u64()?),
            LEADER => Self::Leader {
                epoch: rest.i32()?,
                start: rest.u64()?,
            },
            CLEANED => Self::Cleaned(rest.u64()?),
            _ => return Err(rest.malformed()),
        };
        rest.end()?;
        Ok(change)
    }
}

impl Partition {
    /// Appends the record of a snapshot, to be written when the partition is durable up to its end.
    /// It includes the first `records` records of its stream.
    pub fn encode(&self, records: u64, out: &mut Vec<u8>) {
        for number in [records, self.log_start, self.end, self.cleaned] {
            out.put(number.to_le_bytes());
        }
        let starts = self.epochs.starts();
        out.count(starts.len());
        for (epoch, start) in starts {
            out.put(epoch.to_le_bytes());
            out.put(start.to_le_bytes());
        }
        put_index(&self.index, out);
        put_producers(&self.producers, out);
        let aborted = self.transactions.all_aborted();
        out.count(aborted.len());
        for it in aborted {
            out.put(it.id.0.to_le_bytes());
            for offset in [it.first, it.last, it.stable] {
                out.put(offset.to_le_bytes());
            }
        }
        for block in self.index.parts().1 {
            out.put(block.appended_ms.to_le_bytes());
            out.put(block.dated_ms.to_le_bytes());
        }
    }

    /// Decodes a snapshot.
    pub fn decode(bytes: &[u8], limits: Limits) -> Result<Snapshot, Malformed> {
        let mut rest = Rest::new(bytes, "partition of a topic");
        let mut snapshot = snapshot(&mut rest, limits)?;
        snapshot.partition.index.date(|block| {
            block.appended_ms = rest.i64()?;
            block.dated_ms = rest.i64()?;
            Ok(())
        })?;
        rest.end()?;
        Ok(snapshot)
    }

    /// Decodes a [`super::PARTITION_UNDATED`] that was written at `written_ms`: everything in it
    /// counts as appended then.
    pub fn decode_undated(
        bytes: &[u8],
        limits: Limits,
        written_ms: i64,
    ) -> Result<Snapshot, Malformed> {
        let mut rest = Rest::new(bytes, "partition of a topic");
        let mut snapshot = snapshot(&mut rest, limits)?;
        rest.end()?;
        snapshot.partition.index.date(|block| {
            block.appended_ms = written_ms;
            block.dated_ms = dated_ms(block.timestamp_max, written_ms);
            Ok(())
        })?;
        Ok(snapshot)
    }
}

/// Decodes the part that both layouts have in common.
fn snapshot(rest: &mut Rest<'_>, limits: Limits) -> Result<Snapshot, Malformed> {
    let records = rest.u64()?;
    let (log_start, end, cleaned) = (rest.u64()?, rest.u64()?, rest.u64()?);
    let epochs = epochs(rest)?;
    let index = index(rest, limits)?;
    let producers = producers(rest, end)?;
    let ongoing = ongoing(&producers);
    let aborted = aborted(rest)?;
    let ongoing = ongoing.ok_or(rest.malformed())?;
    let is_ahead = ongoing.last_key_value().is_some_and(|it| *it.0 >= end);
    if log_start > end || is_ahead {
        return Err(rest.malformed());
    }
    let partition = Partition {
        limits,
        log_start,
        end,
        durable: end,
        shown: end,
        cleaned,
        epochs,
        index,
        producers: Producers::restore(producers),
        transactions: Transactions::restore(ongoing, aborted),
    };
    Ok(Snapshot { records, partition })
}

fn epochs(rest: &mut Rest<'_>) -> Result<Epochs, Malformed> {
    let mut starts = Vec::new();
    rest.each(|rest| {
        starts.push((rest.i32()?, rest.u64()?));
        Ok(())
    })?;
    Epochs::restore(starts).ok_or(rest.malformed())
}

fn put_index(index: &Index, out: &mut Vec<u8>) {
    let (block_bytes, blocks) = index.parts();
    out.put(block_bytes.to_le_bytes());
    out.count(blocks.len());
    for block in blocks {
        out.put(block.record.to_le_bytes());
        out.put(block.offset.to_le_bytes());
        out.put(block.bytes.to_le_bytes());
        out.put(block.timestamp_max.to_le_bytes());
        out.put(block.peak.to_le_bytes());
    }
}

fn index(rest: &mut Rest<'_>, limits: Limits) -> Result<Index, Malformed> {
    let block_bytes = rest.u64()?;
    let mut blocks: Vec<Block> = Vec::new();
    rest.each(|rest| {
        let block = Block {
            record: rest.u64()?,
            offset: rest.u64()?,
            bytes: rest.u64()?,
            timestamp_max: rest.i64()?,
            peak: rest.u64()?,
            appended_ms: 0,
            dated_ms: 0,
        };
        let last = blocks.last();
        if last.is_some_and(|last| last.record >= block.record || last.offset >= block.offset) {
            return Err(rest.malformed());
        }
        blocks.push(block);
        Ok(())
    })?;
    Ok(Index::restore(block_bytes, blocks, limits.blocks_max))
}

fn put_producers(producers: &Producers, out: &mut Vec<u8>) {
    let sorted: BTreeMap<_, _> = producers.iter().collect();
    out.count(sorted.len());
    for (id, entry) in sorted {
        out.put(id.0.to_le_bytes());
        out.put(entry.epoch.to_le_bytes());
        out.put(entry.coordinator_epoch.to_le_bytes());
        out.put(entry.last_ms.to_le_bytes());
        let transaction = entry.transaction.unwrap_or(NO_TRANSACTION);
        out.put(transaction.to_le_bytes());
        let window = entry.window.as_slice();
        out.push(window.len() as u8);
        for past in window {
            out.put(past.last_sequence.to_le_bytes());
            out.put(past.offset.to_le_bytes());
            out.put(past.offsets.to_le_bytes());
            out.put(past.timestamp.to_le_bytes());
        }
    }
}

fn producers(rest: &mut Rest<'_>, end: u64) -> Result<HashMap<ProducerId, Entry>, Malformed> {
    let mut producers = HashMap::new();
    rest.each(|rest| {
        let id = ProducerId(rest.i64()?);
        let entry = Entry {
            epoch: rest.i16()?,
            coordinator_epoch: rest.i32()?,
            last_ms: rest.i64()?,
            transaction: Some(rest.u64()?).filter(|it| *it != NO_TRANSACTION),
            window: window(rest, end)?,
        };
        match producers.insert(id, entry) {
            None => Ok(()),
            Some(_) => Err(rest.malformed()),
        }
    })?;
    Ok(producers)
}

/// Returns the open transactions; `None` if two of them begin at the same offset.
fn ongoing(producers: &HashMap<ProducerId, Entry>) -> Option<BTreeMap<u64, ProducerId>> {
    let mut ongoing = BTreeMap::new();
    for (id, entry) in producers {
        if let Some(first) = entry.transaction
            && ongoing.insert(first, *id).is_some()
        {
            return None;
        }
    }
    Some(ongoing)
}

fn window(rest: &mut Rest<'_>, end: u64) -> Result<Window, Malformed> {
    let mut window = Window::default();
    let count = usize::from(rest.u8()?);
    if count > WINDOW {
        return Err(rest.malformed());
    }
    for _ in 0..count {
        let past = Past {
            last_sequence: rest.i32()?,
            offset: rest.u64()?,
            offsets: rest.u32()?,
            timestamp: rest.i64()?,
        };
        let behind = past.offset.checked_add(u64::from(past.offsets));
        if past.offsets == 0 || behind.is_none_or(|behind| behind > end) {
            return Err(rest.malformed());
        }
        window.push(past);
    }
    Ok(window)
}

fn aborted(rest: &mut Rest<'_>) -> Result<Vec<Aborted>, Malformed> {
    let mut aborted = Vec::new();
    rest.each(|rest| {
        aborted.push(Aborted {
            id: ProducerId(rest.i64()?),
            first: rest.u64()?,
            last: rest.u64()?,
            stable: rest.u64()?,
        });
        Ok(())
    })?;
    Ok(aborted)
}
