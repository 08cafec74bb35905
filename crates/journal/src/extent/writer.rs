//! Writes an extent, front to back, from sorted input.
//!
//! Streams must come in ascending order, each followed by its records in ascending order. The
//! extent is invisible to readers until [`Writer::finish`], which returns when every byte is
//! durable under the temporary name. The caller then renames the file and syncs the directory. A
//! writer that is dropped leaves a file that the next start removes.

use std::io;
use std::sync::Arc;

use super::Identity;
use super::frame::{self, FOOTER_SIZE, Footer};
use super::index::{Index, RecordsPage, StreamsPage};
use super::page::Salt;
use super::records::{self, RecordRef};
use super::streams::{self, Entry};
use crate::StreamId;
use crate::disk::{Disk, File};

/// Bytes per write. Each is sent to the device, and the line's own syncs may have to wait behind
/// it.
const WRITE_SIZE: usize = 256 * 1024;

/// Capacity of the buffer: one write, and the page that fills it.
const BUFFER_SIZE: usize = WRITE_SIZE + WRITE_SIZE / 2;

/// An extent that is being written.
#[derive(Debug)]
pub struct Writer {
    identity: Identity,
    salt: Salt,
    file: Arc<dyn File>,
    /// Complete pages and the one under construction.
    buffer: Vec<u8>,
    /// File offset of the buffer.
    written: u64,
    page: records::Builder,
    page_begin: (StreamId, u64),
    pages: Vec<RecordsPage>,
    table: streams::Builder,
    stream: Option<Entry>,
    /// Smallest valid offset of the stream's next record.
    offset_min: u64,
    totals: Footer,
}

impl Writer {
    /// Creates the file under its temporary name.
    pub fn create(disk: &dyn Disk, identity: Identity) -> io::Result<Writer> {
        let file = disk.create(&identity.path_unfinished())?;
        let mut buffer = Vec::with_capacity(BUFFER_SIZE);
        buffer.extend_from_slice(&frame::header(&identity));
        Ok(Writer {
            identity,
            salt: Salt {
                journal_id: identity.journal_id,
                number: identity.number,
            },
            file,
            buffer,
            written: 0,
            page: records::Builder::default(),
            page_begin: (StreamId(0), 0),
            pages: Vec::new(),
            table: streams::Builder::default(),
            stream: None,
            offset_min: 0,
            totals: Footer::default(),
        })
    }

    /// Returns the identity of the extent.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Begins a stream. Only the stream's state is used of `entry`; its counts are ignored.
    pub fn stream(&mut self, entry: &Entry) -> io::Result<()> {
        if self.stream.is_some_and(|last| last.stream >= entry.stream) {
            return Err(disorder("streams do not ascend"));
        }
        self.end_stream();
        let next = entry.next.max(entry.start);
        let erased = entry.erased.min(entry.start);
        self.stream = Some(Entry {
            next,
            erased,
            first: next,
            records: 0,
            bytes: 0,
            ..*entry
        });
        Ok(())
    }

    /// Adds a record of the current stream.
    pub fn record(&mut self, record: &RecordRef<'_>) -> io::Result<()> {
        if !self.page.has_room(&self.buffer, record.payload.len()) {
            self.end_page()?;
        }
        let entry = self
            .stream
            .as_mut()
            .filter(|entry| entry.stream == record.stream);
        let entry = entry.ok_or_else(|| disorder("a record is not of the stream begun last"))?;
        if record.offset < self.offset_min {
            return Err(disorder("offsets of a stream do not ascend"));
        }
        let behind = record
            .offset
            .checked_add(1)
            .ok_or_else(|| disorder("an offset is too large"))?;
        if entry.records == 0 {
            entry.first = record.offset;
        }
        if self.page.is_empty() {
            self.page_begin = (record.stream, record.offset);
        }
        self.page.push(&mut self.buffer, record, entry.bytes);
        entry.next = entry.next.max(behind);
        entry.records += 1;
        entry.bytes += record.payload.len() as u64;
        self.offset_min = behind;
        Ok(())
    }

    /// Returns the bytes of the file so far, written or buffered.
    pub fn size(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes the rest and makes the file durable. Returns its size.
    pub fn finish(mut self) -> io::Result<u64> {
        self.end_stream();
        self.end_page()?;
        self.totals.records_end = self.size();
        let mut streams = Vec::new();
        let table = std::mem::take(&mut self.table);
        for (stream, page) in table.seal(self.salt, self.totals.records_end) {
            streams.push(StreamsPage::new(stream, self.size()).ok_or_else(too_large)?);
            self.buffer.extend_from_slice(&page);
            self.write_full()?;
        }
        self.totals.streams_end = self.size();
        let index = Index {
            records: std::mem::take(&mut self.pages).into_boxed_slice(),
            streams: streams.into_boxed_slice(),
            records_end: self.totals.records_end,
            streams_end: self.totals.streams_end,
        };
        self.buffer.extend_from_slice(&index.seal(self.salt));
        self.totals.index_end = self.size();
        let footer: [u8; FOOTER_SIZE] = self.totals.encode(&self.identity);
        self.buffer.extend_from_slice(&footer);
        self.write()?;
        self.file.sync_all()?;
        Ok(self.written)
    }

    fn end_stream(&mut self) {
        let Some(entry) = self.stream.take() else {
            return;
        };
        let first = if entry.records == 0 {
            entry.next
        } else {
            entry.first
        };
        self.table.push(&Entry { first, ..entry });
        self.totals.streams += 1;
        self.totals.records += entry.records;
        self.totals.bytes += entry.bytes;
        self.offset_min = 0;
    }

    fn end_page(&mut self) -> io::Result<()> {
        if self.page.is_empty() {
            return Ok(());
        }
        let (stream, offset) = self.page_begin;
        let place = self.written + self.page.start() as u64;
        let page = RecordsPage::new(stream, offset, place, self.page.time_ms_max());
        self.pages.push(page.ok_or_else(too_large)?);
        self.page.seal(&mut self.buffer, self.salt, place);
        self.write_full()
    }

    fn write_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < WRITE_SIZE {
            return Ok(());
        }
        let begin = self.written;
        self.write()?;
        self.file.write_out(begin, self.written - begin)
    }

    fn write(&mut self) -> io::Result<()> {
        write_all(&*self.file, &self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        // Free the memory that a huge record needed.
        self.buffer.shrink_to(BUFFER_SIZE);
        Ok(())
    }
}

/// Writes all bytes, or fails. A short write is continued, because callers discard the file on any
/// error.
pub fn write_all(file: &dyn File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = file.write_at(bytes, offset)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(count..).unwrap_or_default();
        offset += count as u64;
    }
    Ok(())
}

fn disorder(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn too_large() -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        "an extent is too large for its index",
    )
}
