//! Trimming, deletion and retention of raw streams.
//!
//! The start of a stream moves once the trim is durable. The bytes leave the disk when their
//! segment is compacted or their extent merged; those of a deleted stream leave it within the
//! journal's erase time. Offsets continue in every case and are never reused.

use std::time::Duration;

use journal::{Status, Ticket};
use model::{ErrorCode, Name};

use super::Store;
use super::admin::{AdminError, StreamView};
use super::directory::{Kind, Location};
use crate::node::Node;

/// The retention of raw streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRetention {
    /// Maximum age of records.
    pub age: Option<Duration>,
    /// Maximum size of a stream in bytes; its oldest records are deleted above it.
    pub bytes: Option<u64>,
}

impl StreamRetention {
    /// Returns whether nothing is ever deleted.
    pub fn is_off(&self) -> bool {
        self.age.is_none() && self.bytes.is_none()
    }
}

impl Node {
    /// Deletes the records of a stream before an offset, or all if the stream ends before it.
    /// Blocks until the deletion is on disk.
    pub fn trim_stream(&self, name: &str, before: u64) -> Result<StreamView, AdminError> {
        let (store, name, location) = self.raw_stream(name)?;
        let now_ms = self.inner.platform.ports.clock.unix_ms();
        let mut guard = store.journal.lock(location.shard, now_ms);
        let trimmed = guard.trim(location.stream, before);
        drop(guard);
        store.wait_for_trim(trimmed)?;
        Ok(store.stream_view(&name, location))
    }

    /// Deletes all records of a stream and erases their bytes from disk. An append creates the
    /// stream again, at the next offset. Blocks until the deletion is on disk.
    pub fn delete_stream(&self, name: &str) -> Result<StreamView, AdminError> {
        let (store, name, location) = self.raw_stream(name)?;
        let now_ms = self.inner.platform.ports.clock.unix_ms();
        let mut guard = store.journal.lock(location.shard, now_ms);
        let erased = guard.erase(location.stream);
        drop(guard);
        store.wait_for_trim(erased)?;
        Ok(store.stream_view(&name, location))
    }

    /// Applies the retention to every raw stream. Returns the number of streams with deletions.
    /// Reads from disk.
    pub fn apply_stream_retention(&self, keep: StreamRetention) -> Result<usize, AdminError> {
        let Some(store) = &self.inner.store else {
            return Ok(0);
        };
        let raw = |directory: &super::Directory| -> Vec<Location> {
            directory.iter(Kind::Raw).map(|(_, at)| at).collect()
        };
        let locations = raw(&store.directory.read());
        let mut count = 0;
        for location in locations {
            count += usize::from(self.retain(store, location, keep)?);
        }
        Ok(count)
    }

    fn retain(
        &self,
        store: &Store,
        at: Location,
        keep: StreamRetention,
    ) -> Result<bool, AdminError> {
        let journal = &store.journal;
        let Some(state) = journal.stream(at.shard, at.stream) else {
            return Ok(false);
        };
        if state.start == state.next_durable {
            return Ok(false);
        }
        let unreadable = |error: journal::ReadError| (ErrorCode::Internal, error.to_string());
        let mut start = state.start;
        if let Some(age) = keep.age {
            let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            let time_ms = self.inner.platform.expiry_ms().saturating_sub(age_ms);
            let young = journal.offset_for_time(at.shard, at.stream, time_ms);
            start = start.max(young.map_err(|error| unreadable(error.into()))?);
        }
        if let Some(bytes) = keep.bytes {
            let newest = journal.offset_for_bytes(at.shard, at.stream, bytes);
            start = start.max(newest.map_err(|error| unreadable(error.into()))?);
        }
        let start = start.min(state.next_durable);
        if start == state.start {
            return Ok(false);
        }
        let now_ms = self.inner.platform.ports.clock.unix_ms();
        let trimmed = journal.lock(at.shard, now_ms).trim(at.stream, start);
        // Records that cannot be deleted now are deleted by the next call.
        Ok(trimmed.is_ok())
    }

    /// Returns the raw stream with that name.
    fn raw_stream(&self, name: &str) -> Result<(&Store, Name, Location), AdminError> {
        let store = self.inner.store.as_ref().ok_or_else(|| {
            let message = "this node has no storage".to_owned();
            (ErrorCode::Unsupported, message)
        })?;
        let invalid = |error: model::NameError| (ErrorCode::InvalidArgument, error.to_string());
        let name = Name::parse(name).map_err(invalid)?;
        match store.find(Kind::Raw, name.base()) {
            Some(location) => Ok((store, name, location)),
            None => Err((ErrorCode::NotFound, format!("no stream `{}`", name.base()))),
        }
    }
}

impl Store {
    fn wait_for_trim(
        &self,
        trimmed: Result<Ticket, journal::AppendError>,
    ) -> Result<(), AdminError> {
        let ticket = trimmed.map_err(|error| super::refusal(&self.journal, error))?;
        match self.journal.wait(ticket) {
            Status::Durable => Ok(()),
            Status::Pending | Status::Failed => {
                Err((ErrorCode::Unconfirmed, platform::Unconfirmed.to_string()))
            }
        }
    }

    fn stream_view(&self, name: &Name, location: Location) -> StreamView {
        let state = self.journal.stream(location.shard, location.stream);
        StreamView {
            name: name.base().to_owned(),
            start: state.map_or(0, |state| state.start),
            next: state.map_or(0, |state| state.next_durable),
        }
    }
}

#[cfg(test)]
mod tests;
