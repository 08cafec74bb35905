//! `StreamHandle`: requests to one stored stream, of whichever kind.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use model::ErrorCode;
use wire::{Append, Cast, Flags, Kind};

use crate::state::clock::Timeout;
use crate::state::exchange::{Exchange, WaitLimits};
use crate::state::link::Outgoing;
use crate::state::routes::Target;
use crate::streams::page::{ReadLimit, RecordPage};
use crate::{CallError, Client};

/// Name and kind of a stored stream, with the connection to its node. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct StreamHandle {
    pub(super) client: Client,
    pub(super) name: Arc<str>,
    pub(super) cast: Cast,
    /// Limit of each request.
    pub(super) deadline: Timeout,
}

impl StreamHandle {
    pub(super) fn new(client: &Client, name: &str, cast: Cast) -> Self {
        Self {
            client: client.clone(),
            name: name.into(),
            cast,
            deadline: client.core().options.deadline,
        }
    }

    /// Appends records, all or none, and returns the node's answer. With `expected`, the first record
    /// must get that position.
    pub(super) async fn append(
        &self,
        expected: Option<u64>,
        records: &[impl AsRef<[u8]>],
    ) -> Result<Bytes, CallError> {
        let size: usize = records.iter().map(|record| record.as_ref().len() + 4).sum();
        let mut body = Vec::with_capacity(size + 12);
        Append::encode(expected, records, &mut body);
        self.ask(Kind::APPEND, &body).await
    }

    /// Reads records from position `from`.
    pub(super) async fn read(&self, from: u64, limit: ReadLimit) -> Result<RecordPage, CallError> {
        let payload = self.ask(Kind::READ, &limit.from(from)).await?;
        RecordPage::decode(&payload)
    }

    /// Sends a request to the node and waits for its answer.
    async fn ask(&self, kind: Kind, body: &[u8]) -> Result<Bytes, CallError> {
        let outgoing = self.request(kind, body);
        let mut exchange = Exchange::new(self.client.core());
        let limits = WaitLimits::new(self.deadline);
        let result = poll_fn(|cx| exchange.poll(&outgoing, limits, cx)).await;
        result.outcome
    }

    /// The message of a request.
    pub(super) fn request<'a>(&'a self, kind: Kind, body: &'a [u8]) -> Outgoing<'a> {
        Outgoing {
            kind,
            flags: Flags::NONE,
            target: Target {
                name: &self.name,
                method: "",
                cast: self.cast,
            },
            metadata: &[],
            body,
        }
    }
}

/// Returns the expected number from the details of a `conflict` error.
pub(super) fn number_of_conflict(error: &CallError) -> Option<u64> {
    match error.code {
        ErrorCode::Conflict => Some(u64::from_le_bytes(error.details.first_chunk().copied()?)),
        _ => None,
    }
}
