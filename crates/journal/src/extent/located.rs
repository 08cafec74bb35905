//! Reads that leave long records in their file.
//!
//! A page or piece is read and checked as a whole when its records are located for the first time
//! since the extent was opened, unless this process has just filed it. Later only the headers of its
//! records are looked at, as long as the operating system has them in its page cache; otherwise it is
//! read from the device, and checked again. What is located is sent unseen, so a client should check
//! what it receives.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::page::{self, Kind, PAGE_SIZE};
use super::reader::{Extent, Page};
use super::records::{HEAD_SIZE_MAX, Item, Walk};
use super::{ExtentError, read};
use crate::StreamId;
use crate::disk::{File, FileRange, StoredBytes};

/// The first bytes of a payload that are returned with its location.
pub const HEAD_SIZE: usize = 64;

/// Size of a payload from which on it stays in its file: reading less costs less than sending it.
pub(crate) const LOCATED_SIZE_MIN: usize = 8 << 10;

/// Bytes of short records that are read for a caller that must not wait: a few between long ones.
const SHORT_SIZE_MAX: usize = 64 << 10;

/// Distance of the bytes of a payload that are looked at to find out whether it is in the page cache.
const CACHED_STEP: usize = 128 << 10;

/// Size up to which a thread keeps its buffer for pages.
const BUFFER_SIZE_MAX: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The reach of a read: memory only, or also the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Memory only: never waits.
    Memory,
    /// Also the disk: may wait.
    Disk,
}

/// The outcome of visiting records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visited {
    /// All of them were visited.
    All,
    /// The visitor stopped.
    Stopped,
    /// The next record is not in memory.
    OutOfReach,
}

/// A record with the location of its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedRecord {
    /// Offset of the record in the stream.
    pub offset: u64,
    /// Time of its block in milliseconds since 1970.
    pub time_ms: u64,
    /// The caller's tag.
    pub tag: u8,
    /// The first bytes of the payload, and zeros if it is shorter.
    pub head: [u8; HEAD_SIZE],
    /// The payload.
    pub payload: StoredBytes,
}

/// Returns the first bytes of a payload, and zeros.
pub(crate) fn head_of(payload: &[u8]) -> [u8; HEAD_SIZE] {
    let mut head = [0; HEAD_SIZE];
    let size = payload.len().min(HEAD_SIZE);
    head[..size].copy_from_slice(&payload[..size]);
    head
}

/// Returns true if the page cache seems to have a range of a file after its first bytes.
pub(crate) fn is_cached(file: &dyn File, offset: u64, size: usize) -> bool {
    let mut steps = (0..size).step_by(CACHED_STEP).skip(1);
    steps.all(|at| {
        let cached = file.read_cached(&mut [0], offset + at as u64);
        cached.unwrap_or(false)
    })
}

/// The pages of an extent that were checked since it was opened.
#[derive(Debug)]
pub(super) struct CheckedPages(Box<[AtomicU64]>);

impl CheckedPages {
    pub(super) fn new(count: usize) -> CheckedPages {
        let words = std::iter::repeat_with(AtomicU64::default);
        CheckedPages(words.take(count.div_ceil(64)).collect())
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.0)
    }

    pub(super) fn note(&self, number: usize) {
        self.0[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
    }

    fn note_all(&self) {
        for word in &self.0 {
            word.store(u64::MAX, Ordering::Relaxed);
        }
    }

    fn has(&self, number: usize) -> bool {
        self.0[number / 64].load(Ordering::Relaxed) & (1 << (number % 64)) != 0
    }
}

/// A visitor of records.
type Visit<'a> = dyn FnMut(LocatedRecord) -> ControlFlow<()> + 'a;

impl Extent {
    /// Notes that the page cache has the records as they were checked or written by this process.
    pub fn note_checked(&self) {
        self.checked.note_all();
    }

    /// Visits a stream's records from an offset on, in order, until `visit` breaks. Long ones stay in
    /// their file.
    pub(super) fn locate(
        &self,
        stream: StreamId,
        from: u64,
        reach: Reach,
        visit: &mut Visit<'_>,
    ) -> Result<Visited, ExtentError> {
        let Some(begin) = self.index.seek(stream, from) else {
            return Ok(Visited::All);
        };
        // Bytes that may still be read from the page cache by a caller that must not wait.
        let mut room = SHORT_SIZE_MAX;
        for number in begin..self.index.records.len() {
            if number > begin && self.index.records[number].stream != stream {
                break;
            }
            let visited = match self.has_long_records(number) {
                true => self.locate_in(number, (stream, from), reach, visit)?,
                false => match self.short_page(number, reach, &mut room)? {
                    Some(page) => self.visit_page(&page, (stream, from), visit)?,
                    None => Visited::OutOfReach,
                },
            };
            if visited != Visited::All {
                return Ok(visited);
            }
        }
        Ok(Visited::All)
    }

    /// Returns true if the records of a page or piece are long on average.
    fn has_long_records(&self, number: usize) -> bool {
        let (_, length) = self.index.records_page(number);
        match &self.index.pieces {
            Some(pieces) => length >= u64::from(pieces[number].count) * LOCATED_SIZE_MIN as u64,
            // A page of more than that has a single record.
            None => length > PAGE_SIZE as u64,
        }
    }

    fn locate_in(
        &self,
        number: usize,
        (stream, from): (StreamId, u64),
        reach: Reach,
        visit: &mut Visit<'_>,
    ) -> Result<Visited, ExtentError> {
        let mut page = PartialPage::new(self, number, reach);
        let Some(mut walk) = page.walk()? else {
            return Ok(Visited::OutOfReach);
        };
        let mut window = [0; HEAD_SIZE_MAX + HEAD_SIZE];
        while !walk.is_at_end() {
            let at = walk.at();
            let size = page.length.saturating_sub(at).min(window.len());
            let window = &mut window[..size];
            if !page.look(at, window)? {
                return Ok(Visited::OutOfReach);
            }
            let item = walk.next_in(window, page.length);
            let item = item.map_err(|damage| damage.at(self.records_path(), page.place))?;
            let Some(item) = item.filter(|item| item.stream <= stream) else {
                break;
            };
            if item.stream < stream || item.offset < from {
                continue;
            }
            let begin = item.payload.start - at;
            let head = head_of(&window[begin..begin + item.payload.len().min(HEAD_SIZE)]);
            let Some(payload) = page.payload(&item)? else {
                return Ok(Visited::OutOfReach);
            };
            if visit(located(&item, head, payload)).is_break() {
                return Ok(Visited::Stopped);
            }
        }
        Ok(Visited::All)
    }

    /// Reads a page or piece of short records; `None` if it is out of reach.
    fn short_page(
        &self,
        number: usize,
        reach: Reach,
        room: &mut usize,
    ) -> Result<Option<Page>, ExtentError> {
        if reach == Reach::Disk {
            return self.records_page(number).map(Some);
        }
        let (place, length) = self.index.records_page(number);
        let Some(left) = room.checked_sub(length as usize) else {
            return Ok(None);
        };
        *room = left;
        let mut bytes = vec![0; length as usize];
        // An error comes again when the page is read.
        let cached = self.records_file().read_cached(&mut bytes, place);
        match cached.unwrap_or(false) {
            true => self.page_of(number, bytes.into()).map(Some),
            false => Ok(None),
        }
    }

    /// Visits the records of a page that was read.
    fn visit_page(
        &self,
        page: &Page,
        (stream, from): (StreamId, u64),
        visit: &mut Visit<'_>,
    ) -> Result<Visited, ExtentError> {
        let mut walk = page.records();
        while let Some(item) = self.item(&mut walk, page)? {
            if item.stream > stream {
                break;
            }
            if item.stream < stream || item.offset < from {
                continue;
            }
            let payload = page.slice(item.payload.clone());
            if visit(located(&item, head_of(&payload), payload.into())).is_break() {
                return Ok(Visited::Stopped);
            }
        }
        Ok(Visited::All)
    }
}

fn located(item: &Item, head: [u8; HEAD_SIZE], payload: StoredBytes) -> LocatedRecord {
    LocatedRecord {
        offset: item.offset,
        time_ms: item.time_ms,
        tag: item.tag,
        head,
        payload,
    }
}

/// A page or piece of which no more is read than is looked at, if it was checked before and is in the
/// page cache.
struct PartialPage<'a> {
    extent: &'a Extent,
    number: usize,
    file: &'a Arc<dyn File>,
    place: u64,
    length: usize,
    reach: Reach,
    /// All of it, once it was read.
    bytes: Option<Vec<u8>>,
}

impl<'a> PartialPage<'a> {
    fn new(extent: &'a Extent, number: usize, reach: Reach) -> PartialPage<'a> {
        let (place, length) = extent.index.records_page(number);
        PartialPage {
            extent,
            number,
            file: extent.records_file(),
            place,
            length: length as usize,
            reach,
            bytes: None,
        }
    }

    /// Returns an iterator over the records; `None` if the page is out of reach.
    fn walk(&mut self) -> Result<Option<Walk>, ExtentError> {
        if let Some(walk) = self.extent.piece_records(self.number) {
            return Ok(Some(walk));
        }
        let mut header = [0; page::HEADER_SIZE];
        let is_there = self.look(0, &mut header)?;
        Ok(is_there.then(|| Walk::new(page::head(&header, Kind::Records))))
    }

    /// Fills the buffer with the bytes from `at` on, which must be in the page. Returns false if they
    /// are out of reach.
    fn look(&mut self, at: usize, buffer: &mut [u8]) -> Result<bool, ExtentError> {
        if self.bytes.is_none() && self.extent.checked.has(self.number) {
            // An error comes again when the page is read.
            let cached = self.file.read_cached(buffer, self.place + at as u64);
            if cached.unwrap_or(false) {
                return Ok(true);
            }
        }
        if self.reach == Reach::Memory {
            return Ok(false);
        }
        let bytes = self.bytes()?;
        buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
        Ok(true)
    }

    /// Returns all bytes of the page, read and checked.
    fn bytes(&mut self) -> Result<&[u8], ExtentError> {
        if self.bytes.is_none() {
            let mut bytes = BUFFER.with_borrow_mut(std::mem::take);
            bytes.resize(self.length, 0);
            read(
                &**self.file,
                self.extent.records_path(),
                &mut bytes,
                self.place,
            )?;
            self.extent.check_page(self.number, &bytes)?;
            self.extent.checked.note(self.number);
            self.bytes = Some(bytes);
        }
        Ok(self.bytes.as_deref().unwrap_or_default())
    }

    /// Returns the payload of a record; `None` if it is out of reach.
    fn payload(&mut self, item: &Item) -> Result<Option<StoredBytes>, ExtentError> {
        let (begin, size) = (item.payload.start, item.payload.len());
        if size < LOCATED_SIZE_MIN {
            let mut bytes = vec![0; size];
            let is_there = self.look(begin, &mut bytes)?;
            return Ok(is_there.then(|| Bytes::from(bytes).into()));
        }
        for at in item.payload.clone().step_by(CACHED_STEP).skip(1) {
            if !self.look(at, &mut [0])? {
                return Ok(None);
            }
        }
        Ok(Some(StoredBytes::File(FileRange {
            file: self.file.clone(),
            offset: self.place + begin as u64,
            size,
        })))
    }
}

impl Drop for PartialPage<'_> {
    fn drop(&mut self) {
        if let Some(bytes) = self
            .bytes
            .take()
            .filter(|it| it.capacity() <= BUFFER_SIZE_MAX)
        {
            BUFFER.set(bytes);
        }
    }
}
