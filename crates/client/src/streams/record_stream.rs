//! `RecordStream`: appends to and reads from a stream of records stored at a node.

use std::time::Duration;

use model::{Name, NameError};
use wire::Cast;

use crate::state::clock::Timeout;
use crate::streams::follow::Follow;
use crate::streams::handle::{StreamHandle, number_of_conflict};
use crate::streams::page::{ReadLimit, RecordPage};
use crate::{CallError, Client};

/// A stream of records that a node stores, from [`Client::stream`]. Cheap to clone.
///
/// An acknowledged record is on disk. Offsets are dense from 0 and never reused; a record never
/// changes.
#[derive(Clone, Debug)]
pub struct RecordStream {
    name: Name,
    handle: StreamHandle,
}

/// Offsets assigned by an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedOffsets {
    /// Offset of the first record appended.
    pub first: u64,
    /// Offset that the next record in the stream will get.
    pub next: u64,
}

impl Client {
    /// Returns the stream `name` (`org/namespace/x`, or just `x`). The first append creates the
    /// stream.
    pub fn stream(&self, name: &str) -> Result<RecordStream, NameError> {
        let name = Name::parse(name)?;
        let handle = StreamHandle::new(self, name.as_str(), Cast::Stream);
        Ok(RecordStream { name, handle })
    }
}

impl RecordStream {
    /// Returns the full name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Sets how long an append or a read may take; `None` for no limit.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.handle.deadline = Timeout::new(deadline.into());
        self
    }

    /// Appends records, all or none, and waits until they are on disk. After `unconfirmed` they may
    /// or may not be stored; [`RecordStream::append_expecting`] makes a retry safe.
    pub async fn append(&self, records: &[impl AsRef<[u8]>]) -> Result<AppendedOffsets, CallError> {
        self.try_append(None, records).await
    }

    /// Appends records if the first one gets the offset `expected`. Otherwise fails with
    /// `conflict`; [`RecordStream::end_of_conflict`] returns the actual end of the stream.
    pub async fn append_expecting(
        &self,
        expected: u64,
        records: &[impl AsRef<[u8]>],
    ) -> Result<AppendedOffsets, CallError> {
        self.try_append(Some(expected), records).await
    }

    /// Returns the end of the stream from a `conflict` error; `None` for other errors.
    pub fn end_of_conflict(error: &CallError) -> Option<u64> {
        number_of_conflict(error)
    }

    async fn try_append(
        &self,
        expected: Option<u64>,
        records: &[impl AsRef<[u8]>],
    ) -> Result<AppendedOffsets, CallError> {
        let payload = self.handle.append(expected, records).await?;
        let appended =
            wire::Appended::decode(&payload).map_err(|error| CallError::malformed(&error))?;
        let wire::Appended { first, next } = appended;
        Ok(AppendedOffsets { first, next })
    }

    /// Reads records from offset `from`, with the default [`ReadLimit`]. Returns no records when
    /// the stream does not exist or ends before that offset.
    pub async fn read(&self, from: u64) -> Result<RecordPage, CallError> {
        self.read_at_most(from, ReadLimit::default()).await
    }

    /// Reads records from offset `from`, up to `limit`.
    pub async fn read_at_most(&self, from: u64, limit: ReadLimit) -> Result<RecordPage, CallError> {
        self.handle.read(from, limit).await
    }

    /// Reads records from offset `from` and waits for new ones.
    pub fn follow(&self, from: u64) -> Follow {
        Follow::new(self.handle.clone(), from)
    }
}
