//! `Follow`: reads a stream of records and waits for new ones.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use model::ErrorCode;
use wire::{Cast, Kind};

use crate::clock::Timeout;
use crate::core::Core;
use crate::exchange::{CallId, Exchange, ExchangeResult, Progress, WaitLimits};
use crate::functions::Functions;
use crate::items::Items;
use crate::pending::Holder;
use crate::stream::{ReadLimit, Record, RecordPage, outgoing};
use crate::streaming::poll_items;
use crate::{CallError, Client};

/// Existing and future records of a stream. From
/// [`RecordStream::follow`](crate::RecordStream::follow).
///
/// The stream survives reconnects and continues after the last record that it yielded. It ends with
/// an error followed by `None` when the next record is no longer retained, when the node refuses
/// the request, or when no connection can be made within the client's deadline.
#[must_use = "nothing is read unless it is polled"]
pub struct Follow {
    client: Client,
    name: Arc<str>,
    cast: Cast,
    limit: ReadLimit,
    exchange: Exchange<Arc<Core>>,
    /// Offset of the record to yield next.
    next: u64,
    /// Items received and not yet decoded.
    taken: VecDeque<Bytes>,
    records: VecDeque<Record>,
    /// Items consumed for which no credit was returned yet.
    consumed: u32,
    is_over: bool,
}

impl Follow {
    pub(crate) fn new(client: Client, name: &str, cast: Cast, from: u64) -> Self {
        Self {
            exchange: Exchange::new(client.core().clone()),
            client,
            name: name.into(),
            cast,
            limit: ReadLimit::default(),
            next: from,
            taken: VecDeque::new(),
            records: VecDeque::new(),
            consumed: 0,
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

    pub(crate) fn poll_record(
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
            let fetched = match self.taken.pop_front() {
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
        self.consumed += 1;
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
            self.exchange = Exchange::new(self.client.core().clone());
            self.consumed = 0;
        }
        is_lost
    }

    /// Sends the request if necessary and waits for items.
    fn poll_items(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let call = ready!(self.poll_begin(cx))?;
        let core = self.client.core();
        match ready!(poll_items(
            core,
            call,
            &mut self.consumed,
            &mut self.taken,
            cx
        )) {
            None => Poll::Ready(Ok(())),
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(())) => {
                let message = "the node ended the stream without an error";
                Poll::Ready(Err(CallError::new(ErrorCode::Protocol, message)))
            }
        }
    }

    fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<Result<CallId, CallError>> {
        let body = self.limit.from(self.next);
        let outgoing = outgoing(Kind::FOLLOW, self.cast, &self.name, &body);
        let limits = WaitLimits {
            wait: self.client.core().options.deadline,
            ..WaitLimits::new(Timeout::NONE)
        };
        let progress = self
            .exchange
            .poll_begin(limits, cx, |link, timeout, waker| {
                let holder =
                    |_: &mut Functions| Holder::Stream(Box::new(Items::new(waker.clone())));
                link.issue(&outgoing, timeout, &mut 0, holder)
            });
        match ready!(progress) {
            Ok(Progress::Sent(call) | Progress::InFlight(call)) => Poll::Ready(Ok(call)),
            Err(ExchangeResult { outcome, .. }) => match outcome {
                Err(error) => Poll::Ready(Err(error)),
                Ok(_) => unreachable!("a stream that did not begin has no reply"),
            },
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
        write!(f, "Follow({} from {})", self.name, self.next)
    }
}
