//! Writes an extent, front to back, from sorted input.
//!
//! Streams must come in ascending order, each followed by its records in ascending order; in an extent
//! in place, by the pieces of a segment that have them. The
//! extent is invisible to readers until [`Writer::finish`], which returns when every byte is
//! durable under the temporary name. The caller then renames the file and syncs the directory. A
//! writer that is dropped leaves a file that the next start removes.

use std::io;
use std::sync::Arc;

use super::frame::{self, FOOTER_SIZE, Footer, Layout};
use super::index::{Index, Piece, RecordsPage, StreamsPage};
use super::page::Salt;
use super::records::{self, RecordRef};
use super::streams::{self, Entry};
use super::{Identity, SegmentRef};
use crate::disk::{Disk, File, write_all};
use crate::record::RECORD_HEADER_SIZE;
use crate::{StreamId, checksum};

/// Bytes per write. Each is sent to the device, and the line's own syncs may have to wait behind
/// it.
const WRITE_SIZE: usize = 256 * 1024;

/// Capacity of the buffer: one write, and the page that fills it.
const BUFFER_SIZE: usize = WRITE_SIZE + WRITE_SIZE / 2;

/// Bytes of a piece at most, unless it has a single record.
pub const PIECE_SIZE: usize = 64 * 1024;

/// A piece of a segment: consecutive records of one stream in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceSummary {
    /// Stream of the records.
    pub stream: StreamId,
    /// Offset of the first record.
    pub first: u64,
    /// Offset of the last record.
    pub last: u64,
    /// Time of the block, in milliseconds since 1970.
    pub time_ms: u64,
    /// Number of records.
    pub count: u32,
    /// Byte in the segment's file at which the first record begins.
    pub place: u32,
    /// Bytes of the records, with their headers.
    pub length: u32,
    /// CRC-32C of these bytes.
    pub checksum: u32,
}

impl PieceSummary {
    /// Returns the bytes of the payloads.
    pub fn payload_bytes(&self) -> u64 {
        let headers = u64::from(self.count) * RECORD_HEADER_SIZE as u64;
        u64::from(self.length).saturating_sub(headers)
    }

    /// Estimates the bytes of the payloads from an offset on, as if all records had the same size.
    pub fn live_bytes(&self, start: u64) -> u64 {
        let offsets = (self.last - self.first).saturating_add(1);
        let end = self.last.saturating_add(1);
        let live = end.saturating_sub(start).min(offsets);
        let bytes = u128::from(self.payload_bytes()) * u128::from(live);
        (bytes / u128::from(offsets)) as u64
    }
}

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
    /// The pieces of an extent in place, one for each entry of `pages`.
    pieces: Option<Vec<Piece>>,
    table: streams::Builder,
    stream: Option<Entry>,
    /// Smallest valid offset of the stream's next record.
    offset_min: u64,
    totals: Footer,
}

impl Writer {
    /// Creates the file under its temporary name.
    pub fn create(disk: &dyn Disk, identity: Identity) -> io::Result<Writer> {
        Writer::with_layout(disk, identity, Layout::Pages, BUFFER_SIZE)
    }

    /// Creates the file of an extent in place, whose records are in a segment.
    pub fn create_in_place(
        disk: &dyn Disk,
        identity: Identity,
        segment: SegmentRef,
    ) -> io::Result<Writer> {
        let mut writer = Writer::with_layout(disk, identity, Layout::InPlace, 0)?;
        writer.totals.segment = segment;
        writer.pieces = Some(Vec::new());
        Ok(writer)
    }

    fn with_layout(
        disk: &dyn Disk,
        identity: Identity,
        layout: Layout,
        buffer_size: usize,
    ) -> io::Result<Writer> {
        let file = disk.create(&identity.path_unfinished())?;
        let mut buffer = Vec::with_capacity(buffer_size);
        buffer.extend_from_slice(&frame::header(&identity, layout));
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
            pieces: None,
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
        if self.pieces.is_some() {
            return Err(disorder("an extent in place has no records of its own"));
        }
        if !self.page.has_room(&self.buffer, record.payload.len()) {
            self.end_page()?;
        }
        let before = self.count(
            record.stream,
            (record.offset, record.offset),
            1,
            record.payload.len() as u64,
        )?;
        if self.page.is_empty() {
            self.page_begin = (record.stream, record.offset);
        }
        self.page.push(&mut self.buffer, record, before);
        Ok(())
    }

    /// Adds a piece of the current stream.
    pub fn piece(&mut self, piece: &PieceSummary) -> io::Result<()> {
        let before = self.count(
            piece.stream,
            (piece.first, piece.last),
            u64::from(piece.count),
            piece.payload_bytes(),
        )?;
        let Some(pieces) = &mut self.pieces else {
            return Err(disorder("only an extent in place has pieces"));
        };
        let PieceSummary { place, time_ms, .. } = *piece;
        let seed = self
            .totals
            .segment
            .seed(self.identity.journal_id, u64::from(place));
        pieces.push(Piece {
            time_ms,
            before,
            length: piece.length,
            count: piece.count,
            crc: checksum::join(seed, piece.checksum, piece.length),
        });
        let page = RecordsPage::of_piece(piece.stream, piece.first, place, time_ms);
        self.pages.push(page);
        Ok(())
    }

    /// Counts records of the current stream, the first and the last of which have these offsets.
    /// Returns the bytes of the stream's payloads before them.
    fn count(
        &mut self,
        stream: StreamId,
        (first, last): (u64, u64),
        records: u64,
        bytes: u64,
    ) -> io::Result<u64> {
        let entry = self.stream.as_mut().filter(|entry| entry.stream == stream);
        let entry = entry.ok_or_else(|| disorder("a record is not of the stream begun last"))?;
        if first < self.offset_min || last < first {
            return Err(disorder("offsets of a stream do not ascend"));
        }
        let behind = last
            .checked_add(1)
            .ok_or_else(|| disorder("an offset is too large"))?;
        if entry.records == 0 {
            entry.first = first;
        }
        let before = entry.bytes;
        entry.next = entry.next.max(behind);
        entry.records += records;
        entry.bytes += bytes;
        self.offset_min = behind;
        Ok(before)
    }

    /// Returns true if the extent is one in place, which takes pieces instead of records.
    pub fn is_in_place(&self) -> bool {
        self.pieces.is_some()
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
            pieces: self.pieces.take().map(Vec::into_boxed_slice),
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

fn disorder(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn too_large() -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        "an extent is too large for its index",
    )
}
