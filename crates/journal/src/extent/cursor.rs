//! Sequential cursors over a whole extent, for merging and counting.

use std::sync::Arc;

use super::ExtentError;
use super::reader::{Extent, Page};
use super::records::{self, Item, RecordRef};
use super::streams::{self, Entry};
use crate::StreamId;

/// A cursor over the entries of a stream table.
#[derive(Debug)]
pub struct Entries {
    extent: Arc<Extent>,
    number: usize,
    page: Option<(Page, streams::Walk)>,
    head: Option<Entry>,
}

impl Entries {
    /// Creates a cursor at the first entry.
    pub fn new(extent: Arc<Extent>) -> Result<Entries, ExtentError> {
        let mut entries = Entries {
            extent,
            number: 0,
            page: None,
            head: None,
        };
        entries.advance()?;
        Ok(entries)
    }

    /// Returns the current entry; `None` after the last.
    pub fn peek(&self) -> Option<&Entry> {
        self.head.as_ref()
    }

    /// Moves to the next entry. Streams are ascending.
    pub fn advance(&mut self) -> Result<(), ExtentError> {
        loop {
            if let Some((page, walk)) = &mut self.page
                && let Some(entry) = self.extent.next_entry(walk, page)?
            {
                self.head = Some(entry);
                return Ok(());
            }
            if self.number == self.extent.index.streams.len() {
                (self.page, self.head) = (None, None);
                return Ok(());
            }
            let page = self.extent.streams_page(self.number)?;
            self.number += 1;
            self.page = Some((page.clone(), streams::Walk::new(page.head)));
        }
    }
}

/// A cursor over the records of an extent, in order, which can skip ahead.
#[derive(Debug)]
pub struct Cursor {
    extent: Arc<Extent>,
    /// Number of the page after the loaded one.
    number: usize,
    page: Option<(Page, records::Walk)>,
    head: Option<Item>,
}

impl Cursor {
    /// Creates a cursor before the first record.
    pub fn new(extent: Arc<Extent>) -> Cursor {
        Cursor {
            extent,
            number: 0,
            page: None,
            head: None,
        }
    }

    /// Moves forward to the first record at or after `(stream, offset)`, without reading the pages
    /// between. Never moves back.
    pub fn seek(&mut self, stream: StreamId, offset: u64) -> Result<(), ExtentError> {
        if let Some(number) = self.extent.index.seek(stream, offset)
            && number >= self.number
        {
            (self.number, self.page, self.head) = (number, None, None);
        }
        while self
            .peek()?
            .is_some_and(|item| (item.stream, item.offset) < (stream, offset))
        {
            self.head = None;
        }
        Ok(())
    }

    /// Returns the current record if it belongs to the stream, and moves to the next.
    pub fn take(&mut self, stream: StreamId) -> Result<Option<CursorRecord>, ExtentError> {
        if self.peek()?.is_none_or(|item| item.stream != stream) {
            return Ok(None);
        }
        let page = self.page.as_ref().map(|(page, _)| page.clone());
        Ok(self
            .head
            .take()
            .zip(page)
            .map(|(item, page)| CursorRecord { page, item }))
    }

    fn peek(&mut self) -> Result<Option<&Item>, ExtentError> {
        while self.head.is_none() {
            if let Some((page, walk)) = &mut self.page {
                self.head = self.extent.item(walk, page)?;
                if self.head.is_some() {
                    break;
                }
            }
            if self.number == self.extent.index.records.len() {
                return Ok(None);
            }
            let page = self.extent.records_page(self.number)?;
            self.number += 1;
            self.page = Some((page.clone(), page.records()));
        }
        Ok(self.head.as_ref())
    }
}

/// A record together with the page that holds its bytes.
#[derive(Debug)]
pub struct CursorRecord {
    page: Page,
    item: Item,
}

impl CursorRecord {
    /// Returns the record.
    pub fn record(&self) -> RecordRef<'_> {
        RecordRef {
            stream: self.item.stream,
            offset: self.item.offset,
            time_ms: self.item.time_ms,
            tag: self.item.tag,
            payload: &self.page.bytes[self.item.payload.clone()],
        }
    }
}
