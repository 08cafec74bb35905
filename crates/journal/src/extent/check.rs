//! Checks every page of an extent and reports the damaged ones.

use std::io;
use std::sync::Arc;

use super::reader::{Extent, Page};
use super::records::{Item, RecordRef};
use super::streams::{self, Entry};
use super::{Damage, ExtentError};
use crate::StreamId;

/// A damaged page, or piece of a segment, and its range of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPage {
    /// Path of the file.
    pub path: String,
    /// Byte in the file at which the page begins.
    pub place: u64,
    /// Bytes of the page.
    pub length: u64,
    /// Description of the damage.
    pub what: &'static str,
    /// First stream on the page and, on a page of records, its first offset.
    pub first: (StreamId, u64),
    /// First stream and offset of the next page, if there is one.
    pub next: Option<(StreamId, u64)>,
    /// True for a page of records, false for a page of the stream table.
    pub held_records: bool,
}

impl Extent {
    /// Visits every readable entry of the stream table and returns the damaged pages.
    pub fn check_streams(
        self: &Arc<Self>,
        visit: &mut dyn FnMut(&Entry),
    ) -> io::Result<Vec<DamagedPage>> {
        let pages = &self.index.streams;
        let mut damaged = Vec::new();
        for (number, begin) in pages.iter().enumerate() {
            let read = self.streams_page(number).and_then(|page| {
                let mut walk = streams::Walk::new(page.head);
                let mut entries = Vec::new();
                while let Some(entry) = self.next_entry(&mut walk, &page)? {
                    entries.push(entry);
                }
                Ok(entries)
            });
            let what = match read {
                Ok(entries) => {
                    entries.iter().for_each(&mut *visit);
                    continue;
                }
                Err(error) => damage_of(error)?,
            };
            let (place, length) = self.index.streams_page(number);
            damaged.push(DamagedPage {
                path: self.path().to_owned(),
                place,
                length,
                what,
                first: (begin.stream, 0),
                next: pages.get(number + 1).map(|page| (page.stream, 0)),
                held_records: false,
            });
        }
        Ok(damaged)
    }

    /// Visits every readable record, in order, and returns the damaged pages. `read` is called with
    /// the bytes of each page.
    pub fn check_records(
        self: &Arc<Self>,
        visit: &mut dyn FnMut(&RecordRef<'_>),
        read: &mut dyn FnMut(u64),
    ) -> io::Result<Vec<DamagedPage>> {
        let pages = &self.index.records;
        let mut damaged = Vec::new();
        for (number, begin) in pages.iter().enumerate() {
            let (place, length) = self.index.records_page(number);
            let items = self.records_page(number).and_then(|page| self.items(page));
            read(length);
            let what = match items {
                Ok((page, items)) => {
                    for item in items {
                        visit(&RecordRef {
                            stream: item.stream,
                            offset: item.offset,
                            time_ms: item.time_ms,
                            tag: item.tag,
                            payload: &page.slice(item.payload),
                        });
                    }
                    continue;
                }
                Err(error) => damage_of(error)?,
            };
            damaged.push(DamagedPage {
                path: self.records_path().to_owned(),
                place,
                length,
                what,
                first: (begin.stream, begin.offset),
                next: pages.get(number + 1).map(|page| (page.stream, page.offset)),
                held_records: true,
            });
        }
        Ok(damaged)
    }

    /// Decodes all records of a page, which must be ascending.
    fn items(&self, page: Page) -> Result<(Page, Vec<Item>), ExtentError> {
        let mut walk = page.records();
        let mut items: Vec<Item> = Vec::new();
        while let Some(item) = self.item(&mut walk, &page)? {
            let place = (item.stream, item.offset);
            if items
                .last()
                .is_some_and(|last| (last.stream, last.offset) >= place)
            {
                return Err(Damage("records are out of order").at(self.records_path(), page.place));
            }
            items.push(item);
        }
        Ok((page, items))
    }
}

/// Returns the description of the damage; an I/O error stays an error.
fn damage_of(error: ExtentError) -> io::Result<&'static str> {
    match error {
        ExtentError::Damaged { what, .. } => Ok(what),
        ExtentError::Io { source, .. } => Err(source),
        ExtentError::Version { .. } => Ok("its version differs from the extent's"),
    }
}
