//! A pipelined stream of append requests to one node.
//!
//! A request is sent before the last is answered. Answers may overtake each other, since those to
//! requests without entries need no sync; the stream puts them in order. It has no task of its own:
//! openraft's replication task polls both directions.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use journal::ShardId;
use openraft::raft::StreamAppendResult;
use tokio::time::{Instant, Sleep};

use super::connection::Caller;
use super::frame::Operation;
use super::message;
use super::network::unreachable;
use super::reports::Reports;
use crate::raft::{AppendRequest, AppendResponse, LogId, RpcError, Types, Vote};

/// Requests of one stream that may be unanswered.
const UNANSWERED_MAX: usize = 64;

/// Time limit of an answer. openraft itself never ends a stream that stands still.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Sends requests as they come, and yields their results in that order.
///
/// After each commit openraft asks for a request without entries that only says so. It is held for
/// a moment: the next request with entries says the same, and takes its place. A result that covers
/// a later entry covers the earlier ones, so the held one needs none of its own.
pub(super) struct AppendStream<S> {
    input: Option<S>,
    caller: Caller,
    shard: ShardId,
    reports: Arc<Reports>,
    /// Requests that are not answered, or not before an earlier one.
    sent: VecDeque<Sent>,
    /// Number of the first of them.
    first: u32,
    is_over: bool,
    /// A request that only tells the committed index.
    held: Option<AppendRequest>,
    /// Longest time to hold it.
    hold: Duration,
    /// Runs while a request is held, or was when it was set.
    hold_timer: Option<Pin<Box<Sleep>>>,
    /// Runs until the time limit of the oldest request, or of one before it.
    answer_timer: Option<Pin<Box<Sleep>>>,
    /// The follower's log is known to match: the first request of a stream finds that out.
    has_succeeded: bool,
}

struct Sent {
    at: Instant,
    vote: Vote,
    previous: Option<LogId>,
    last: Option<LogId>,
    has_entries: bool,
    answer: Option<AppendResponse>,
}

impl<S: Stream<Item = AppendRequest> + Unpin> AppendStream<S> {
    /// Creates a stream that has sent nothing.
    pub(super) fn new(
        input: S,
        caller: Caller,
        shard: ShardId,
        hold: Duration,
        reports: Arc<Reports>,
    ) -> AppendStream<S> {
        AppendStream {
            input: Some(input),
            caller,
            shard,
            reports,
            sent: VecDeque::new(),
            first: 0,
            is_over: false,
            held: None,
            hold,
            hold_timer: None,
            answer_timer: None,
            has_succeeded: false,
        }
    }

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

    /// Sends the held request if its time is over. A timer that was set for an earlier one sends it
    /// sooner, which spares a timer for each.
    fn wait_with_held(&mut self, context: &mut Context<'_>) {
        let hold = self.hold;
        let timer = self
            .hold_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(hold)));
        if timer.as_mut().poll(context).is_ready() {
            self.hold_timer = None;
            self.send_held();
        }
    }

    fn send_one(&mut self, request: AppendRequest) {
        let last = request.entries.last().map(|entry| entry.log_id);
        let number = self.first.wrapping_add(self.sent.len() as u32);
        self.caller
            .send(Operation::Append, self.shard, number, |out| {
                message::put_append(out, &request);
            });
        self.sent.push_back(Sent {
            at: Instant::now(),
            vote: request.vote,
            previous: request.prev_log_id,
            last: last.or(request.prev_log_id),
            has_entries: last.is_some(),
            answer: None,
        });
    }

    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while let Poll::Ready(answer) = self.caller.answers.poll(context) {
            let (number, body) = answer.ok_or(io::ErrorKind::ConnectionReset)?;
            let place = number.wrapping_sub(self.first) as usize;
            match self.sent.get_mut(place) {
                Some(sent) => {
                    let answer = message::get_append_answer(body)?;
                    if answer == AppendResponse::Success
                        && let Some(last) = sent.last.filter(|_| sent.has_entries)
                    {
                        let peer = self.caller.peer();
                        self.reports
                            .note_flushed(peer, self.shard, &sent.vote, last);
                    }
                    sent.answer = Some(answer);
                }
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        self.check_oldest(context)
    }

    /// Checks the time limit of the oldest request.
    fn check_oldest(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(Sent {
            at, answer: None, ..
        }) = self.sent.front()
        else {
            return Ok(());
        };
        let end = *at + ANSWER_MAX;
        let timer = self
            .answer_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= end {
                // The peer may be gone without a word: a new connection finds out.
                self.caller.close_connection();
                return Err(io::ErrorKind::TimedOut.into());
            }
            timer.as_mut().reset(end);
        }
        Ok(())
    }

    fn end(
        &mut self,
        error: &io::Error,
    ) -> Poll<Option<Result<StreamAppendResult<Types>, RpcError>>> {
        self.is_over = true;
        Poll::Ready(Some(Err(unreachable(error))))
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
            return this.end(&error);
        }
        let Some(Sent {
            previous,
            last,
            answer,
            ..
        }) = this.sent.front_mut()
        else {
            return match this.input {
                None => Poll::Ready(None),
                Some(_) => Poll::Pending,
            };
        };
        let Some(answer) = answer.take() else {
            return Poll::Pending;
        };
        if answer == AppendResponse::Conflict && previous.is_none() {
            // Nothing is before the first entry, so no follower can lack it.
            return this.end(&io::ErrorKind::InvalidData.into());
        }
        let result = answer.into_stream_result(*previous, *last);
        this.sent.pop_front();
        this.first = this.first.wrapping_add(1);
        this.has_succeeded = result.is_ok();
        this.is_over = result.is_err();
        Poll::Ready(Some(Ok(result)))
    }
}
