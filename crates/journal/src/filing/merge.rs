//! Merges neighbouring extents into one, or rewrites one that has too many dead bytes.
//!
//! It walks all stream tables in parallel, stream by stream. The merged entry combines all tables,
//! and records before the stream's start are dropped; pages that only have such records are not
//! even read.

use std::sync::Arc;

use super::collect::{RECORD_COST, STREAM_COST};
use super::{FilingError, Line};
use crate::disk::Disk;
use crate::extent::{Cursor, Entries, Entry, Extent, Identity, Writer};

/// A merge in progress.
#[derive(Debug)]
pub(super) struct MergeJob {
    /// Bytes of the inputs.
    pub(super) size: u64,
    /// Generation of the census when the merge began.
    pub(super) generation: u64,
    inputs: Vec<Input>,
    writer: Writer,
    current: Option<CurrentStream>,
}

#[derive(Debug)]
struct Input {
    extent: Arc<Extent>,
    entries: Entries,
    records: Cursor,
}

/// The stream that is being copied, and the current input.
#[derive(Clone, Copy, Debug)]
struct CurrentStream {
    entry: Entry,
    input: usize,
    is_sought: bool,
}

impl MergeJob {
    /// Begins to merge `extents`: neighbours, oldest first, at least one.
    pub(super) fn begin(
        disk: &dyn Disk,
        extents: &[Arc<Extent>],
        number: u64,
        generation: u64,
    ) -> Result<MergeJob, FilingError> {
        let (first, last) = (extents[0].identity(), extents[extents.len() - 1].identity());
        let identity = Identity {
            number,
            begin: first.begin,
            ..*last
        };
        let input = |extent: &Arc<Extent>| {
            let entries = Entries::new(extent.clone())?;
            Ok(Input {
                extent: extent.clone(),
                entries,
                records: Cursor::new(extent.clone()),
            })
        };
        let inputs = extents
            .iter()
            .map(input)
            .collect::<Result<_, FilingError>>()?;
        let writer = Writer::create(disk, identity)?;
        let size = extents.iter().map(|extent| extent.data_size()).sum();
        Ok(MergeJob {
            size,
            generation,
            inputs,
            writer,
            current: None,
        })
    }

    /// Returns the identity of the merged extent.
    pub(super) fn identity(&self) -> Identity {
        *self.writer.identity()
    }

    /// Iterates over the inputs.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Arc<Extent>> {
        self.inputs.iter().map(|input| &input.extent)
    }

    /// Copies about `budget` bytes. Returns true after the last.
    pub(super) fn advance(&mut self, line: &dyn Line, budget: u64) -> Result<bool, FilingError> {
        let mut spent = 0;
        while spent < budget {
            let Some(current) = self.current else {
                if !self.next_stream(line)? {
                    return Ok(true);
                }
                spent += STREAM_COST;
                continue;
            };
            spent += self.copy(current)?;
        }
        Ok(false)
    }

    /// Finishes the file under its temporary name.
    pub(super) fn finish(self) -> Result<(), FilingError> {
        self.writer.finish()?;
        Ok(())
    }

    /// Begins the next stream of all tables. Returns false if there is none.
    fn next_stream(&mut self, line: &dyn Line) -> Result<bool, FilingError> {
        let heads = self.inputs.iter().filter_map(|input| input.entries.peek());
        let Some(stream) = heads.map(|entry| entry.stream).min() else {
            return Ok(false);
        };
        let mut known = Entry::new(stream);
        for input in &mut self.inputs {
            let entry = input.entries.peek().filter(|entry| entry.stream == stream);
            if let Some(entry) = entry {
                known.learn(entry);
                input.entries.advance()?;
            }
        }
        // A start beyond `next` concerns unfiled records; their filing will set it.
        let start = line.start(self.writer.identity().shard, stream);
        known.start = known.start.max(start.min(known.next));
        self.writer.stream(&known)?;
        self.current = Some(CurrentStream {
            entry: known,
            input: 0,
            is_sought: false,
        });
        Ok(true)
    }

    /// Copies the current stream's next record, or moves to the next input. Returns the cost.
    fn copy(&mut self, current: CurrentStream) -> Result<u64, FilingError> {
        let CurrentStream {
            entry,
            input,
            is_sought,
        } = current;
        let Some(source) = self.inputs.get_mut(input) else {
            self.current = None;
            return Ok(0);
        };
        if !is_sought {
            source.records.seek(entry.stream, entry.start)?;
            self.current = Some(CurrentStream {
                is_sought: true,
                ..current
            });
        }
        let Some(taken) = source.records.take(entry.stream)? else {
            self.current = Some(CurrentStream {
                input: input + 1,
                is_sought: false,
                ..current
            });
            return Ok(0);
        };
        let record = taken.record();
        self.writer.record(&record)?;
        Ok(record.payload.len() as u64 + RECORD_COST)
    }
}
