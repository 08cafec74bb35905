//! [`Streams`]: administration of raw streams: lists, trimming, deletion and retention.
//!
//! The start of a stream moves once the trim is durable. The bytes leave the disk when their
//! segment is compacted or their extent merged; those of a deleted stream leave it within the
//! journal's erase time. Offsets continue in every case and are never reused.

use std::sync::Arc;
use std::time::Duration;

use journal::{AppendError, Ticket};
use model::Name;
use platform::{Durable, Platform};

use crate::directory::{Kind, Location};
use crate::error::StreamsError;
use crate::store::Store;
use crate::stream::Stream;

/// The raw streams of a node. Cheap to clone.
#[derive(Clone)]
pub struct Streams {
    pub(crate) platform: Arc<Platform>,
    pub(crate) store: Arc<Store>,
}

/// A raw stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// `org/namespace/x`.
    pub name: String,
    /// The oldest retained offset.
    pub start: u64,
    /// The offset after the newest durable record.
    pub next: u64,
}

/// The retention of raw streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age of records.
    pub age: Option<Duration>,
    /// Maximum size of a stream in bytes; its oldest records are deleted above it.
    pub bytes: Option<u64>,
}

impl Retention {
    /// Returns whether nothing is ever deleted.
    pub fn is_off(&self) -> bool {
        self.age.is_none() && self.bytes.is_none()
    }
}

impl Streams {
    /// Returns the raw streams of a store.
    pub fn new(platform: Arc<Platform>, store: Arc<Store>) -> Self {
        Self { platform, store }
    }

    /// Returns the raw streams with that name prefix after the name `after`, in order.
    pub fn list(&self, prefix: &str, after: &str, limit: usize) -> Vec<StreamView> {
        let names = self.store.names(Kind::Raw, prefix, after, limit);
        let view = |name: String| Some(self.view(&name, self.store.find(Kind::Raw, &name)?));
        names.into_iter().filter_map(view).collect()
    }

    /// Returns the raw stream with that name.
    pub fn get(&self, name: &Name) -> Result<StreamView, StreamsError> {
        let (name, location) = self.find(name.as_str())?;
        Ok(self.view(name.base(), location))
    }

    /// Returns the oldest retained offset of a stream; 0 if it does not exist.
    pub fn start_of(&self, stream: &Stream) -> u64 {
        let location = self.store.find(Kind::Raw, stream.name().base());
        location.map_or(0, |location| self.view("", location).start)
    }

    /// Deletes the records of a stream before an offset, or all if the stream ends before it.
    /// Blocks until the deletion is on disk.
    pub fn trim(&self, name: &str, before: u64) -> Result<StreamView, StreamsError> {
        let (name, location) = self.find(name)?;
        let mut guard = self
            .store
            .journal
            .lock(location.shard, self.platform.unix_ms());
        let trimmed = guard.trim(location.stream, before);
        drop(guard);
        self.wait_for(trimmed)?;
        Ok(self.view(name.base(), location))
    }

    /// Deletes all records of a stream and erases their bytes from disk. An append creates the
    /// stream again, at the next offset. Blocks until the deletion is on disk.
    pub fn delete(&self, name: &str) -> Result<StreamView, StreamsError> {
        let (name, location) = self.find(name)?;
        let mut guard = self
            .store
            .journal
            .lock(location.shard, self.platform.unix_ms());
        let erased = guard.erase(location.stream);
        drop(guard);
        self.wait_for(erased)?;
        Ok(self.view(name.base(), location))
    }

    /// Applies the retention to every raw stream. Returns the number of streams with deletions.
    /// Reads from disk.
    pub fn apply_retention(&self, keep: Retention) -> Result<usize, StreamsError> {
        let mut count = 0;
        for (_, location) in self.store.all(Kind::Raw) {
            count += usize::from(self.retain(location, keep)?);
        }
        Ok(count)
    }

    fn retain(&self, at: Location, keep: Retention) -> Result<bool, StreamsError> {
        let journal = &self.store.journal;
        let Some(state) = journal.stream(at.shard, at.stream) else {
            return Ok(false);
        };
        if state.start == state.next_durable {
            return Ok(false);
        }
        let unreadable = |error| StreamsError::from(journal::ReadError::from(error));
        let mut start = state.start;
        if let Some(age) = keep.age {
            let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            let time_ms = self.platform.expiry_ms().saturating_sub(age_ms);
            let young = journal.offset_for_time(at.shard, at.stream, time_ms);
            start = start.max(young.map_err(unreadable)?);
        }
        if let Some(bytes) = keep.bytes {
            let newest = journal.offset_for_bytes(at.shard, at.stream, bytes);
            start = start.max(newest.map_err(unreadable)?);
        }
        let start = start.min(state.next_durable);
        if start == state.start {
            return Ok(false);
        }
        let trimmed = journal
            .lock(at.shard, self.platform.unix_ms())
            .trim(at.stream, start);
        // Records that cannot be deleted now are deleted by the next call.
        Ok(trimmed.is_ok())
    }

    /// Returns the raw stream with that name.
    fn find(&self, name: &str) -> Result<(Name, Location), StreamsError> {
        let name = Name::parse(name)?;
        match self.store.find(Kind::Raw, name.base()) {
            Some(location) => Ok((name, location)),
            None => Err(StreamsError::Missing {
                name: name.base().to_owned(),
            }),
        }
    }

    fn wait_for(&self, trimmed: Result<Ticket, AppendError>) -> Result<(), StreamsError> {
        let ticket = trimmed.map_err(|error| self.store.append_error(error))?;
        let durable = Durable::new(&self.store.journal, [None, Some(ticket)]);
        Ok(durable.wait()?)
    }

    fn view(&self, name: &str, location: Location) -> StreamView {
        let state = self.store.journal.stream(location.shard, location.stream);
        StreamView {
            name: name.to_owned(),
            start: state.map_or(0, |state| state.start),
            next: state.map_or(0, |state| state.next_durable),
        }
    }
}

#[cfg(test)]
mod tests;
