//! Makes one extent of several neighbours, or of one that holds too much that is dead.
//!
//! It goes through all stream tables at once, stream by stream; of a stream it keeps what any of
//! them knows, and the records at or behind its start. What lies before is not even read if it
//! fills pages.

use std::sync::Arc;

use super::collect::{RECORD_COST, STREAM_COST};
use super::{FilingError, Line};
use crate::disk::Disk;
use crate::extent::{Cursor, Entries, Entry, Extent, Identity, Writer};

/// A merge that is under way.
#[derive(Debug)]
pub(super) struct Merging {
    /// Bytes of the files that go in.
    pub(super) size: u64,
    /// The census that this merge's reading of starts belongs to.
    pub(super) generation: u64,
    inputs: Vec<Input>,
    writer: Writer,
    current: Option<Current>,
}

#[derive(Debug)]
struct Input {
    extent: Arc<Extent>,
    entries: Entries,
    records: Cursor,
}

/// The stream that is being copied, and the input from which.
#[derive(Clone, Copy, Debug)]
struct Current {
    entry: Entry,
    input: usize,
    is_sought: bool,
}

impl Merging {
    /// Begins to merge `extents`, neighbours, oldest first, of which there is at least one.
    pub(super) fn begin(
        disk: &dyn Disk,
        extents: &[Arc<Extent>],
        number: u64,
        generation: u64,
    ) -> Result<Merging, FilingError> {
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
        let size = extents.iter().map(|extent| extent.size()).sum();
        Ok(Merging {
            size,
            generation,
            inputs,
            writer,
            current: None,
        })
    }

    /// What it will be.
    pub(super) fn identity(&self) -> Identity {
        *self.writer.identity()
    }

    /// What goes in.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Arc<Extent>> {
        self.inputs.iter().map(|input| &input.extent)
    }

    /// Copies some, about `budget` bytes. True: that was the last.
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

    /// Completes the file under its temporary name.
    pub(super) fn finish(self) -> Result<(), FilingError> {
        self.writer.finish()?;
        Ok(())
    }

    /// Begins the next stream that any table mentions. False: there is none.
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
        // What the line says of records that are not filed yet, it will say again.
        let start = line.start(self.writer.identity().shard, stream);
        known.start = known.start.max(start.min(known.next));
        self.writer.stream(&known)?;
        self.current = Some(Current {
            entry: known,
            input: 0,
            is_sought: false,
        });
        Ok(true)
    }

    /// Copies the current stream's next record, or turns to the next input. Returns the cost.
    fn copy(&mut self, current: Current) -> Result<u64, FilingError> {
        let Current {
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
            self.current = Some(Current {
                is_sought: true,
                ..current
            });
        }
        let Some(taken) = source.records.take(entry.stream)? else {
            self.current = Some(Current {
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
