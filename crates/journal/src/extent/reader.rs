//! A complete extent, open for concurrent reads.
//!
//! Only the sparse index stays in memory. Every page is checked on each read.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::frame::{self, FOOTER_SIZE, Footer, HEADER_SIZE, Refusal};
use super::index::Index;
use super::page::{self, Head, Kind, Salt};
use super::records::{self, Item};
use super::streams::{self, Entry};
use super::{Damage, ExtentError, Identity};
use crate::StreamId;
use crate::disk::{Disk, File};

/// A complete extent.
#[derive(Debug)]
pub struct Extent {
    identity: Identity,
    salt: Salt,
    path: String,
    file: Arc<dyn File>,
    size: u64,
    footer: Footer,
    pub(super) index: Index,
}

impl Extent {
    /// Opens the extent with this identity, and checks everything but its pages.
    pub fn open(disk: &dyn Disk, identity: Identity) -> Result<Extent, ExtentError> {
        let path = identity.path();
        let extent = Extent::open_any(disk, &path)?;
        if extent.identity != identity {
            return Err(Damage("the header belongs to another extent").at(&path, 0));
        }
        Ok(extent)
    }

    /// Opens the extent at a path, with any identity.
    pub fn open_any(disk: &dyn Disk, path: &str) -> Result<Extent, ExtentError> {
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
        let identity = match frame::open_header(&header) {
            Ok(identity) => identity,
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
        let salt = Salt {
            journal_id: identity.journal_id,
            number: identity.number,
        };
        let mut bytes = vec![0; (footer.index_end - footer.streams_end) as usize];
        read(&*file, &path, &mut bytes, footer.streams_end)?;
        let index = Index::open(&bytes, salt, footer.records_end, footer.streams_end)
            .map_err(|damage| damage.at(&path, footer.streams_end))?;
        Ok(Extent {
            identity,
            salt,
            path,
            file,
            size,
            footer,
            index,
        })
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
        size_of_val(&*self.index.records) + size_of_val(&*self.index.streams)
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
            let mut walk = records::Walk::new(page.head);
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
            let mut walk = records::Walk::new(page.head);
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
        let mut walk = records::Walk::new(page.head);
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
    /// `entry`. Reads O(log n) pages.
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
            let page = self.records_page(middle)?;
            if self.before(middle, stream, &page) < bytes {
                low = middle
            } else {
                high = middle
            }
        }
        let page = self.records_page(low)?;
        let mut below = self.before(low, stream, &page);
        let mut walk = records::Walk::new(page.head);
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
        self.page(Kind::Records, self.index.records_page(number))
    }

    pub(super) fn streams_page(&self, number: usize) -> Result<Page, ExtentError> {
        self.page(Kind::Streams, self.index.streams_page(number))
    }

    pub(super) fn item(
        &self,
        walk: &mut records::Walk,
        page: &Page,
    ) -> Result<Option<Item>, ExtentError> {
        walk.next(&page.bytes)
            .map_err(|damage| damage.at(&self.path, page.place))
    }

    pub(super) fn next_entry(
        &self,
        walk: &mut streams::Walk,
        page: &Page,
    ) -> Result<Option<Entry>, ExtentError> {
        walk.next(&page.bytes)
            .map_err(|damage| damage.at(&self.path, page.place))
    }

    fn page(&self, kind: Kind, (place, length): (u64, u64)) -> Result<Page, ExtentError> {
        let mut bytes = vec![0; length as usize];
        read(&*self.file, &self.path, &mut bytes, place)?;
        let head = page::check(&bytes, kind, self.salt, place)
            .map_err(|damage| damage.at(&self.path, place))?;
        Ok(Page {
            bytes: Bytes::from(bytes),
            head,
            place,
        })
    }
}

/// A page that was read and checked.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) bytes: Bytes,
    pub(super) head: Head,
    pub(super) place: u64,
}

impl Page {
    /// Returns a part of the page, without copying it.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> Bytes {
        self.bytes.slice(range)
    }
}

fn read(file: &dyn File, path: &str, buffer: &mut [u8], place: u64) -> Result<(), ExtentError> {
    file.read_at(buffer, place)
        .map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => Damage("the file ends early").at(path, place),
            _ => ExtentError::Io {
                path: path.to_owned(),
                source,
            },
        })
}
