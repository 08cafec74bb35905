//! A complete extent, open for concurrent reads.
//!
//! Only the sparse index stays in memory; of an extent in place also the stream table, which is small,
//! so that such an extent needs no descriptor of its own. Every page and every piece that is read is
//! checked.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::frame::{self, FOOTER_SIZE, Footer, HEADER_SIZE, Layout, Refusal};
use super::index::Index;
use super::located::CheckedPages;
use super::page::{self, Head, Kind, Salt};
use super::records::{self, Item};
use super::retained::{RetainedSegment, RetainedSegments};
use super::streams::{self, Entry};
use super::{Damage, ExtentError, Identity, SegmentRef, read};
use crate::StreamId;
use crate::disk::{Disk, File};

/// A complete extent.
#[derive(Debug)]
pub struct Extent {
    identity: Identity,
    salt: Salt,
    path: String,
    source: Source,
    size: u64,
    footer: Footer,
    pub(super) index: Index,
    pub(super) checked: CheckedPages,
}

/// Where the pages of an extent are read from.
#[derive(Debug)]
enum Source {
    /// Its own file.
    File(Arc<dyn File>),
    /// Memory for the stream table, and a segment for the records.
    InPlace {
        /// The file from [`HEADER_SIZE`] to the end of the stream table.
        table: Bytes,
        segment: Arc<RetainedSegment>,
    },
}

/// The checked header and footer of an extent.
struct Frame {
    file: Arc<dyn File>,
    path: String,
    size: u64,
    identity: Identity,
    layout: Layout,
    footer: Footer,
}

impl Frame {
    fn open(disk: &dyn Disk, path: &str) -> Result<Frame, ExtentError> {
        let path = path.to_owned();
        let io = |source| ExtentError::Io {
            path: path.clone(),
            source,
        };
        let file = disk.open(&path).map_err(io)?;
        let size = file.size().map_err(io)?;
        let Some(place) = size
            .checked_sub(FOOTER_SIZE as u64)
            .filter(|&at| at >= HEADER_SIZE as u64)
        else {
            return Err(Damage("the file is too short").at(&path, 0));
        };
        let mut header = [0; HEADER_SIZE];
        read(&*file, &path, &mut header, 0)?;
        let (identity, layout) = match frame::open_header(&header) {
            Ok(opened) => opened,
            Err(Refusal::Damaged(damage)) => return Err(damage.at(&path, 0)),
            Err(Refusal::Version(found)) => {
                return Err(ExtentError::Version {
                    path,
                    found,
                    supported: frame::VERSION,
                });
            }
        };
        let mut footer = [0; FOOTER_SIZE];
        read(&*file, &path, &mut footer, place)?;
        let footer =
            Footer::open(&footer, &identity, place).map_err(|damage| damage.at(&path, place))?;
        Ok(Frame {
            file,
            path,
            size,
            identity,
            layout,
            footer,
        })
    }

    fn check(&self, identity: &Identity) -> Result<(), ExtentError> {
        match self.identity == *identity {
            true => Ok(()),
            false => Err(Damage("the header belongs to another extent").at(&self.path, 0)),
        }
    }

    fn read(&self, begin: u64, end: u64) -> Result<Vec<u8>, ExtentError> {
        let mut bytes = vec![0; (end - begin) as usize];
        read(&*self.file, &self.path, &mut bytes, begin)?;
        Ok(bytes)
    }
}

/// Returns the segment that an extent refers to, if it is one in place.
pub fn segment_of(disk: &dyn Disk, identity: &Identity) -> Result<Option<SegmentRef>, ExtentError> {
    let frame = Frame::open(disk, &identity.path())?;
    frame.check(identity)?;
    Ok((frame.layout == Layout::InPlace).then_some(frame.footer.segment))
}

impl Extent {
    /// Opens the extent with this identity, and checks everything but its pages. The segment of an
    /// extent in place is taken from `segments`, or opened and added to them.
    pub fn open(
        disk: &dyn Disk,
        identity: Identity,
        segments: &mut RetainedSegments,
    ) -> Result<Extent, ExtentError> {
        let frame = Frame::open(disk, &identity.path())?;
        frame.check(&identity)?;
        Extent::open_frame(disk, frame, segments)
    }

    /// Opens the extent at a path, with any identity.
    pub fn open_any(
        disk: &dyn Disk,
        path: &str,
        segments: &mut RetainedSegments,
    ) -> Result<Extent, ExtentError> {
        Extent::open_frame(disk, Frame::open(disk, path)?, segments)
    }

    fn open_frame(
        disk: &dyn Disk,
        frame: Frame,
        segments: &mut RetainedSegments,
    ) -> Result<Extent, ExtentError> {
        let (identity, footer) = (frame.identity, frame.footer);
        let salt = Salt {
            journal_id: identity.journal_id,
            number: identity.number,
        };
        let (records_end, streams_end) = (footer.records_end, footer.streams_end);
        let bytes = frame.read(streams_end, footer.index_end)?;
        let index = Index::open(&bytes, frame.layout, salt, records_end, streams_end)
            .map_err(|damage| damage.at(&frame.path, streams_end))?;
        let source = match frame.layout {
            Layout::Pages => Source::File(frame.file),
            Layout::InPlace => {
                let journal_id = identity.journal_id;
                let segment = segments.get(disk, journal_id, &footer.segment)?;
                let is_within = |number| {
                    let (place, length) = index.records_page(number);
                    footer.segment.contains(place, length)
                };
                if !(0..index.records.len()).all(is_within) {
                    let damage = Damage("the index points outside of the segment");
                    return Err(damage.at(&frame.path, streams_end));
                }
                let table = Bytes::from(frame.read(HEADER_SIZE as u64, streams_end)?);
                Source::InPlace { table, segment }
            }
        };
        Ok(Extent {
            identity,
            salt,
            path: frame.path,
            source,
            size: frame.size,
            footer,
            checked: CheckedPages::new(index.records.len()),
            index,
        })
    }

    /// Returns the segment with the records of an extent in place; `None` for another extent.
    pub fn segment(&self) -> Option<&SegmentRef> {
        match self.source {
            Source::File(_) => None,
            Source::InPlace { .. } => Some(&self.footer.segment),
        }
    }

    /// Returns the bytes of its file, and of its pieces of a segment.
    pub fn data_size(&self) -> u64 {
        let pieces = self.index.pieces.iter().flatten();
        self.size + pieces.map(|piece| u64::from(piece.length)).sum::<u64>()
    }

    /// Returns the path of the file with the records.
    pub(super) fn records_path(&self) -> &str {
        match &self.source {
            Source::File(_) => &self.path,
            Source::InPlace { segment, .. } => &segment.path,
        }
    }

    /// Returns the file with the records.
    pub(super) fn records_file(&self) -> &Arc<dyn File> {
        match &self.source {
            Source::File(file) => file,
            Source::InPlace { segment, .. } => &segment.file,
        }
    }

    /// Returns an iterator over the records of a piece; `None` in an extent with pages.
    pub(super) fn piece_records(&self, number: usize) -> Option<records::Walk> {
        let piece = &self.index.pieces.as_ref()?[number];
        Some(records::Walk::of_piece(piece.count, piece.time_ms))
    }

    /// Checks the bytes of a page of records, or of a piece. Returns its head, and the time of the
    /// records of a piece.
    pub(super) fn check_page(
        &self,
        number: usize,
        bytes: &[u8],
    ) -> Result<(Head, u64), ExtentError> {
        let (place, _) = self.index.records_page(number);
        let (Source::InPlace { segment, .. }, Some(pieces)) = (&self.source, &self.index.pieces)
        else {
            let head = page::check(bytes, Kind::Records, self.salt, place);
            return Ok((head.map_err(|damage| damage.at(&self.path, place))?, 0));
        };
        let piece = &pieces[number];
        segment.check(place, piece, bytes)?;
        let head = Head {
            kind: Kind::Pieces,
            count: piece.count,
            before: piece.before,
        };
        Ok((head, piece.time_ms))
    }

    /// Returns the identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes of all payloads.
    pub fn bytes(&self) -> u64 {
        self.footer.bytes
    }

    /// Returns the number of streams in the stream table.
    pub fn streams(&self) -> u64 {
        self.footer.streams
    }

    /// Returns the bytes of memory that the open extent holds.
    pub fn memory(&self) -> usize {
        let table = match &self.source {
            Source::File(_) => 0,
            Source::InPlace { table, .. } => table.len(),
        };
        let pieces = self.index.pieces.as_deref().map_or(0, size_of_val);
        let pages = size_of_val(&*self.index.records) + size_of_val(&*self.index.streams);
        pages + pieces + table + self.checked.memory()
    }

    /// Returns the stream's entry in the stream table.
    pub fn entry(&self, stream: StreamId) -> Result<Option<Entry>, ExtentError> {
        let Some(number) = self.index.seek_entry(stream) else {
            return Ok(None);
        };
        let page = self.streams_page(number)?;
        let mut walk = streams::Walk::new(page.head);
        while let Some(entry) = self.next_entry(&mut walk, &page)? {
            if entry.stream >= stream {
                return Ok((entry.stream == stream).then_some(entry));
            }
        }
        Ok(None)
    }

    /// Visits a stream's records from an offset on, in order, until `visit` breaks.
    pub(super) fn read(
        &self,
        stream: StreamId,
        from: u64,
        visit: &mut dyn FnMut(&Page, Item) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ExtentError> {
        let Some(begin) = self.index.seek(stream, from) else {
            return Ok(ControlFlow::Continue(()));
        };
        for number in begin..self.index.records.len() {
            if number > begin && self.index.records[number].stream != stream {
                break;
            }
            let page = self.records_page(number)?;
            let mut walk = page.records();
            while let Some(item) = self.item(&mut walk, &page)? {
                if item.stream > stream {
                    return Ok(ControlFlow::Continue(()));
                }
                let wanted = item.stream == stream && item.offset >= from;
                if wanted && visit(&page, item).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the offset of the stream's first record from `from` on with a time of `time_ms` or
    /// later.
    pub fn offset_for_time(
        &self,
        stream: StreamId,
        from: u64,
        time_ms: u64,
    ) -> Result<Option<u64>, ExtentError> {
        let Some(begin) = self.index.seek(stream, from) else {
            return Ok(None);
        };
        for number in begin..self.index.records.len() {
            let entry = &self.index.records[number];
            if number > begin && entry.stream != stream {
                break;
            }
            if !entry.reaches(time_ms) {
                continue;
            }
            let page = self.records_page(number)?;
            let mut walk = page.records();
            while let Some(item) = self.item(&mut walk, &page)? {
                if item.stream == stream && item.offset >= from && item.time_ms >= time_ms {
                    return Ok(Some(item.offset));
                }
            }
        }
        Ok(None)
    }

    /// Returns the bytes of a stream's records below an offset. Reads one page.
    pub fn bytes_below(&self, stream: StreamId, offset: u64) -> Result<u64, ExtentError> {
        let Some(number) = self.index.seek(stream, offset) else {
            return Ok(0);
        };
        let page = self.records_page(number)?;
        let mut bytes = self.before(number, stream, &page);
        let mut walk = page.records();
        while let Some(item) = self.item(&mut walk, &page)? {
            if (item.stream, item.offset) >= (stream, offset) {
                break;
            }
            if item.stream == stream {
                bytes += item.payload.len() as u64;
            }
        }
        Ok(bytes)
    }

    /// Returns the smallest offset below which the extent holds at least `bytes` of the stream of
    /// `entry`. Reads O(log n) pages, or one piece.
    pub fn offset_behind_bytes(&self, entry: &Entry, bytes: u64) -> Result<u64, ExtentError> {
        let stream = entry.stream;
        let end = self
            .index
            .records
            .partition_point(|page| page.stream <= stream);
        let Some(mut low) = self.index.seek(stream, entry.first) else {
            return Ok(entry.first);
        };
        // Find the last page with fewer bytes before it: the offset is on that page or after it.
        let mut high = end;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let before = match &self.index.pieces {
                Some(pieces) => pieces[middle].before,
                None => self.before(middle, stream, &self.records_page(middle)?),
            };
            if before < bytes {
                low = middle
            } else {
                high = middle
            }
        }
        let page = self.records_page(low)?;
        let mut below = self.before(low, stream, &page);
        let mut walk = page.records();
        while let Some(item) = self.item(&mut walk, &page)? {
            if item.stream > stream {
                return Ok(entry.next);
            }
            if item.stream < stream {
                continue;
            }
            if below >= bytes {
                return Ok(item.offset);
            }
            below += item.payload.len() as u64;
        }
        let next = self
            .index
            .records
            .get(low + 1)
            .filter(|page| page.stream == stream);
        Ok(next.map_or(entry.next, |page| page.offset))
    }

    /// Returns the bytes of a stream on pages before this one.
    fn before(&self, number: usize, stream: StreamId, page: &Page) -> u64 {
        if self.index.records[number].stream == stream {
            page.head.before
        } else {
            0
        }
    }

    pub(super) fn records_page(&self, number: usize) -> Result<Page, ExtentError> {
        let (place, length) = self.index.records_page(number);
        let mut bytes = vec![0; length as usize];
        read(
            &**self.records_file(),
            self.records_path(),
            &mut bytes,
            place,
        )?;
        self.page_of(number, bytes.into())
    }

    /// Returns the page of records, or the piece, that has these bytes, which it checks.
    pub(super) fn page_of(&self, number: usize, bytes: Bytes) -> Result<Page, ExtentError> {
        let (place, _) = self.index.records_page(number);
        let (head, time_ms) = self.check_page(number, &bytes)?;
        Ok(Page {
            bytes,
            head,
            time_ms,
            place,
        })
    }

    pub(super) fn streams_page(&self, number: usize) -> Result<Page, ExtentError> {
        let (place, length) = self.index.streams_page(number);
        let bytes = match &self.source {
            Source::File(file) => {
                let mut bytes = vec![0; length as usize];
                read(&**file, &self.path, &mut bytes, place)?;
                Bytes::from(bytes)
            }
            Source::InPlace { table, .. } => {
                let begin = place as usize - HEADER_SIZE;
                table.slice(begin..begin + length as usize)
            }
        };
        let head = page::check(&bytes, Kind::Streams, self.salt, place)
            .map_err(|damage| damage.at(&self.path, place))?;
        Ok(Page {
            bytes,
            head,
            time_ms: 0,
            place,
        })
    }

    pub(super) fn item(
        &self,
        walk: &mut records::Walk,
        page: &Page,
    ) -> Result<Option<Item>, ExtentError> {
        walk.next(&page.bytes)
            .map_err(|damage| damage.at(self.records_path(), page.place))
    }

    pub(super) fn next_entry(
        &self,
        walk: &mut streams::Walk,
        page: &Page,
    ) -> Result<Option<Entry>, ExtentError> {
        walk.next(&page.bytes)
            .map_err(|damage| damage.at(&self.path, page.place))
    }
}

/// A page, or a piece of a segment, that was read and checked.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) bytes: Bytes,
    pub(super) head: Head,
    /// Time of the records of a piece, which is that of their block.
    time_ms: u64,
    pub(super) place: u64,
}

impl Page {
    /// Returns an iterator over the records.
    pub(super) fn records(&self) -> records::Walk {
        match self.head.kind {
            Kind::Pieces => records::Walk::of_piece(self.head.count, self.time_ms),
            Kind::Records | Kind::Streams | Kind::Index => records::Walk::new(self.head),
        }
    }

    /// Returns a part of the page, without copying it.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> Bytes {
        self.bytes.slice(range)
    }
}
