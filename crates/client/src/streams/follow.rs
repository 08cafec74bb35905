//! `Follow`: reads a stream of records and waits for new ones.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use model::ErrorCode;
use wire::Kind;

use crate::CallError;
use crate::state::clock::Timeout;
use crate::state::exchange::WaitLimits;
use crate::state::item_call::ItemCall;
use crate::streams::handle::StreamHandle;
use crate::streams::page::{ReadLimit, Record, RecordPage};

/// Existing and future records of a stream. From
/// [`RecordStream::follow`](crate::RecordStream::follow).
///
/// The stream survives reconnects and continues after the last record that it yielded. It ends with
/// an error followed by `None` when the next record is no longer retained, when the node refuses
/// the request, or when no connection can be made within the client's deadline.
#[must_use = "nothing is read unless it is polled"]
pub struct Follow {
    handle: StreamHandle,
    limit: ReadLimit,
    items: ItemCall,
    /// Offset of the record to yield next.
    next: u64,
    records: VecDeque<Record>,
    is_over: bool,
}

impl Follow {
    pub(super) fn new(handle: StreamHandle, from: u64) -> Self {
        Self {
            items: ItemCall::new(handle.client.core().clone()),
            handle,
            limit: ReadLimit::default(),
            next: from,
            records: VecDeque::new(),
            is_over: false,
        }
    }

    /// Limits how much the node sends per item.
    pub fn limit(mut self, limit: ReadLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Returns the next record; waits without a limit.
    pub async fn next(&mut self) -> Option<Result<Record, CallError>> {
        std::future::poll_fn(|cx| self.poll_record(cx)).await
    }

    pub(super) fn poll_record(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Record, CallError>>> {
        loop {
            if let Some(record) = self.records.pop_front() {
                self.next = record.offset + 1;
                return Poll::Ready(Some(Ok(record)));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let fetched = match self.items.next_item() {
                Some(item) => self.unpack(&item),
                None => ready!(self.poll_items(cx)),
            };
            if let Err(error) = fetched
                && !self.goes_on(&error)
            {
                self.is_over = true;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    fn unpack(&mut self, item: &Bytes) -> Result<(), CallError> {
        let records = RecordPage::decode(item)?.records;
        // After a reconnect, some records may have been yielded already.
        let next = self.next;
        self.records
            .extend(records.into_iter().filter(|record| record.offset >= next));
        Ok(())
    }

    /// Prepares to ask again after a lost connection. Returns false for other errors.
    fn goes_on(&mut self, error: &CallError) -> bool {
        let is_lost = error.code == ErrorCode::Unconfirmed;
        if is_lost {
            self.items.restart();
        }
        is_lost
    }

    /// Sends the request if necessary and waits for items.
    fn poll_items(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let body = self.limit.from(self.next);
        let outgoing = self.handle.request(Kind::FOLLOW, &body);
        let limits = WaitLimits {
            wait: self.handle.client.core().options.deadline,
            ..WaitLimits::new(Timeout::NONE)
        };
        match ready!(self.items.poll(&outgoing, limits, cx)) {
            None => Poll::Ready(Ok(())),
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(())) => {
                let message = "the node ended the stream without an error";
                Poll::Ready(Err(CallError::new(ErrorCode::Protocol, message)))
            }
        }
    }
}

impl Stream for Follow {
    type Item = Result<Record, CallError>;

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Record, CallError>>> {
        self.get_mut().poll_record(cx)
    }
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Follow({} from {})", self.handle.name, self.next)
    }
}
