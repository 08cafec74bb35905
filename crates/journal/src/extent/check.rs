//! Reading every page of an extent, past those that are damaged, to say what is.

use std::io;
use std::sync::Arc;

use super::reader::{Extent, Page};
use super::records::{self, Item, RecordRef};
use super::streams::{self, Entry};
use super::{Damage, ExtentError};
use crate::StreamId;

/// A page that is not what was written, and what stood on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPage {
    /// Where it lies in the file.
    pub place: u64,
    /// Bytes of it.
    pub length: u64,
    /// In which way it is damaged.
    pub what: &'static str,
    /// The stream and, on a page of records, the offset that it begins with.
    pub first: (StreamId, u64),
    /// With what the next page begins, if there is one.
    pub next: Option<(StreamId, u64)>,
    /// Whether it held records; else it held a part of the stream table.
    pub held_records: bool,
}

impl Extent {
    /// Shows every entry of the stream table that can be read, and says which pages cannot.
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

    /// Shows every record that can be read, in order, and says which pages cannot. `read` is told
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

    /// All records of a page, ascending.
    fn items(&self, page: Page) -> Result<(Page, Vec<Item>), ExtentError> {
        let mut walk = records::Walk::new(page.head);
        let mut items: Vec<Item> = Vec::new();
        while let Some(item) = self.item(&mut walk, &page)? {
            let place = (item.stream, item.offset);
            if items
                .last()
                .is_some_and(|last| (last.stream, last.offset) >= place)
            {
                return Err(Damage("records are out of order").at(self.path(), page.place));
            }
            items.push(item);
        }
        Ok((page, items))
    }
}

/// What is damaged; an error of the disk stays one.
fn damage_of(error: ExtentError) -> io::Result<&'static str> {
    match error {
        ExtentError::Damaged { what, .. } => Ok(what),
        ExtentError::Io { source, .. } => Err(source),
        ExtentError::Version { .. } => Ok("it has another version than its extent"),
    }
}
