//! `ItemCall`: a call with any number of replies, its items and their credit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use wire::Credit;

use crate::state::core::Core;
use crate::state::exchange::{CallId, Exchange, ExchangeResult, Progress, WaitLimits, set_waker};
use crate::state::functions::Functions;
use crate::state::holder::Holder;
use crate::state::items::{CREDIT_BATCH, End, Items};
use crate::state::link::Outgoing;

/// A call whose replies are taken one by one. Dropping it cancels the call.
pub(crate) struct ItemCall {
    exchange: Exchange<Arc<Core>>,
    /// Items received and not yet taken.
    received: VecDeque<Bytes>,
    /// Items taken for which no credit was returned yet.
    consumed: u32,
}

impl ItemCall {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            exchange: Exchange::new(core),
            received: VecDeque::new(),
            consumed: 0,
        }
    }

    /// Takes the next item that was received.
    pub(crate) fn next_item(&mut self) -> Option<Bytes> {
        let item = self.received.pop_front()?;
        self.consumed += 1;
        Some(item)
    }

    /// Gives up the call and prepares for another; its first poll makes it. Items that were received
    /// stay.
    pub(crate) fn restart(&mut self) {
        self.exchange.restart();
        self.consumed = 0;
    }

    /// Makes the call if necessary, and waits for items or for the end.
    pub(crate) fn poll(
        &mut self,
        outgoing: &Outgoing<'_>,
        limits: WaitLimits,
        cx: &mut Context<'_>,
    ) -> Poll<Option<End>> {
        let progress = self
            .exchange
            .poll_begin(limits, cx, |link, timeout, waker| {
                let holder =
                    |_: &mut Functions| Holder::Stream(Box::new(Items::new(waker.clone())));
                link.issue(outgoing, timeout, &mut 0, holder)
            });
        match ready!(progress) {
            Ok(Progress::Sent(call) | Progress::InFlight(call)) => self.poll_received(call, cx),
            Err(ExchangeResult { outcome, .. }) => match outcome {
                Err(error) => Poll::Ready(Some(Err(error))),
                Ok(_) => unreachable!("a stream that did not begin has no reply"),
            },
        }
    }

    /// Takes the items that have arrived and returns credit for the items consumed before. Returns
    /// the end of the stream when no items are left.
    fn poll_received(&mut self, call: CallId, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let CallId { link, correlation } = call;
        let mut state = self.exchange.core().state.lock();
        let Some(link) = state.link_mut(link) else {
            return Poll::Ready(Some(Ok(())));
        };
        let Some(Holder::Stream(items)) = link.pending.holder(correlation) else {
            return Poll::Ready(Some(Ok(())));
        };
        let returned = match self.consumed >= CREDIT_BATCH && !items.is_ended() {
            true => std::mem::take(&mut self.consumed),
            false => 0,
        };
        items.allow(returned);
        let outcome = if !items.queue.is_empty() {
            std::mem::swap(&mut items.queue, &mut self.received);
            Poll::Ready(None)
        } else if let Some(end) = items.take_end() {
            Poll::Ready(Some(end))
        } else {
            set_waker(&mut items.waker, cx);
            Poll::Pending
        };
        if returned > 0 {
            let credit = Credit {
                messages: returned,
                bytes: 0,
            };
            link.queue_frame(|out| credit.encode(correlation, out));
        }
        outcome
    }
}
