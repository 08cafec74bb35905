//! A pipelined stream of append requests to one node.
//!
//! A request is sent before the last is answered. Answers may overtake each other, since those to
//! requests without entries need no sync; the stream puts them in order.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use openraft::raft::{AppendEntriesResponse, StreamAppendResult};
use tokio::time::Sleep;

use crate::group::Group;
use crate::link::Caller;
use crate::network::unreachable;
use crate::types::{AppendRequest, LogId, RpcError, Types};
use crate::wire::{self, Kind};

/// Requests of one stream that may be unanswered.
const UNANSWERED_MAX: usize = 64;

/// Sends requests as they come, and yields their results in that order. It has no task of its own:
/// openraft's replication task polls both directions.
///
/// After each commit openraft asks for a request without entries that only says so. It is held for
/// a moment: the next request with entries says the same, and takes its place. A result that
/// covers a later position covers the earlier ones, so the held one needs none of its own.
pub(crate) struct AppendStream<S> {
    input: Option<S>,
    caller: Caller,
    group: Arc<Group>,
    reader: Option<u64>,
    /// Requests that are not answered, or not before an earlier one.
    sent: VecDeque<Sent>,
    /// The number of the first of them.
    first: u32,
    is_over: bool,
    /// A request that only tells the committed position.
    held: Option<AppendRequest>,
    /// How long it is held at most.
    hold: Duration,
    /// Runs while something is held, or was when it was set.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the follower's log is known to match: the first request of a stream finds that out.
    has_succeeded: bool,
}

struct Sent {
    previous: Option<LogId>,
    last: Option<LogId>,
    reply: Option<AppendEntriesResponse<Types>>,
}

impl<S: Stream<Item = AppendRequest> + Unpin> AppendStream<S> {
    /// A stream that has sent nothing. `reader` is the node's id if it is sent entries.
    pub(crate) fn new(
        input: S,
        caller: Caller,
        group: Arc<Group>,
        reader: Option<u64>,
        hold: Duration,
    ) -> AppendStream<S> {
        AppendStream {
            input: Some(input),
            caller,
            group,
            reader,
            sent: VecDeque::new(),
            first: 0,
            is_over: false,
            held: None,
            hold,
            timer: None,
            has_succeeded: false,
        }
    }

    /// Sends what there is to send.
    fn send(&mut self, context: &mut Context<'_>) {
        while let Some(input) = &mut self.input
            && self.sent.len() < UNANSWERED_MAX
        {
            match Pin::new(input).poll_next(context) {
                Poll::Ready(Some(request)) if self.can_hold(&request) => self.held = Some(request),
                Poll::Ready(Some(request)) => {
                    self.held = None;
                    self.send_one(request);
                }
                Poll::Ready(None) => {
                    self.input = None;
                    self.send_held();
                }
                Poll::Pending => break,
            }
        }
        if self.held.is_some() {
            self.wait_with_held(context);
        }
    }

    fn can_hold(&self, request: &AppendRequest) -> bool {
        request.entries.is_empty() && self.has_succeeded && !self.hold.is_zero()
    }

    fn send_held(&mut self) {
        if let Some(request) = self.held.take() {
            self.send_one(request);
        }
    }

    /// Sends the held request if its time is over. A timer that was set for an earlier one makes
    /// it go sooner, which spares a timer for each.
    fn wait_with_held(&mut self, context: &mut Context<'_>) {
        let hold = self.hold;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(hold)));
        if timer.as_mut().poll(context).is_ready() {
            self.timer = None;
            self.send_held();
        }
    }

    fn send_one(&mut self, request: AppendRequest) {
        let last = request.entries.last().map(|entry| entry.log_id);
        let number = self.first.wrapping_add(self.sent.len() as u32);
        self.caller
            .send(Kind::Append, self.group.number, number, |out| {
                wire::put_append(out, &request);
            });
        self.sent.push_back(Sent {
            previous: request.prev_log_id,
            last: last.or(request.prev_log_id),
            reply: None,
        });
    }

    /// Takes the answers that were read.
    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while let Poll::Ready(answer) = self.caller.answers.poll(context) {
            let (number, body) = answer.ok_or(io::ErrorKind::ConnectionReset)?;
            let index = number.wrapping_sub(self.first) as usize;
            match self.sent.get_mut(index) {
                Some(sent) => sent.reply = Some(wire::get_append_reply(body)?),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }
}

impl<S: Stream<Item = AppendRequest> + Unpin> Stream for AppendStream<S> {
    type Item = Result<StreamAppendResult<Types>, RpcError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        this.send(context);
        if let Err(error) = this.receive(context) {
            this.is_over = true;
            return Poll::Ready(Some(Err(unreachable(&error))));
        }
        match this.sent.front_mut() {
            Some(Sent { reply, .. }) if reply.is_none() => Poll::Pending,
            Some(_) => {
                let result = this.sent.pop_front().and_then(|sent| {
                    let reply = sent.reply?;
                    Some(reply.into_stream_result(sent.previous, sent.last))
                });
                this.first = this.first.wrapping_add(1);
                this.has_succeeded = matches!(result, Some(Ok(_)));
                this.is_over = !this.has_succeeded;
                if let (Some(reader), Some(Ok(Some(last)))) = (this.reader, &result) {
                    this.group.set_needed(reader, last.index + 1);
                }
                Poll::Ready(result.map(Ok))
            }
            None if this.input.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
