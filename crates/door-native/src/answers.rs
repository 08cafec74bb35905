//! The answers of a connection: what is sent now, and what waits to be sent in order.
//!
//! An answer that waits for the disk or for a mailbox waits in one queue, in the order of the
//! requests. Answers that wait for nothing, and errors that depend on nothing, are sent at once.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use conversation_service::Appended;
use door::{AnswerQueue, Bound};
use messaging::mailboxes::{AcceptedWrite, WriteError};
use messaging::{Copies, HeldCall, RequestError, Turn};
use model::Failure;
use platform::{Durable, Pending};
use routing::Ticket;
use store::{AppendedRecords, StreamError};
use topic_service::records::Appending;
use wire::{AppendedMessages, MadeIds, Receipt, Stored};

use super::appended::placed;
use super::errors::ErrorAnswer;
use super::outlet::{NativeOutlet, correlation};
use super::routes::Routes;

/// The bound on the answers of one connection that wait, and on their bytes; requests that wait for a
/// thread, for the archive or for a shared store of quotas count, too. Above it, nothing is read.
pub(super) const BOUND: Bound = Bound {
    count: 8_192,
    size: 8 << 20,
};

/// The answers of one connection; see the module's documentation.
pub(super) struct Answers {
    output: Output,
    queue: AnswerQueue<Waiting>,
}

/// The way to the client.
struct Output {
    outlet: Arc<NativeOutlet>,
    /// True if the outlet has answers that are not flushed yet.
    is_unflushed: bool,
}

/// An answer that waits.
struct Waiting {
    tag: Ticket,
    /// The charge for the request, which must be on disk, too.
    charge: Option<Durable>,
    answer: Answer,
}

/// An answer of which the outcome may be known later.
pub(super) enum Answer {
    /// A write to a mailbox.
    Write(Pending<AcceptedWrite, WriteError>),
    /// An append to a stream.
    Append(Pending<AppendedRecords, StreamError>),
    /// An append to a conversation.
    Messages(conversation_service::Pending<Appended>),
    /// An append to a topic.
    Records(Appending),
    /// A one-way message.
    Receipt(Copies),
    /// A write to memory, with the number of its copies.
    Copies(u32),
    /// An encoded frame.
    Frame(Box<[u8]>),
    /// A call that is handed on when its charge is on disk.
    Call {
        /// The number of its route.
        route: u16,
        /// The call.
        call: HeldCall,
    },
}

impl Answers {
    pub(super) fn new(outlet: Arc<NativeOutlet>) -> Self {
        Self {
            output: Output {
                outlet,
                is_unflushed: false,
            },
            queue: AnswerQueue::new(BOUND),
        }
    }

    /// Sends a frame with the other frames of the chunk.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.output.send(write);
    }

    /// Answers a request with an error.
    pub(super) fn fail(&mut self, tag: Ticket, error: impl Into<ErrorAnswer>) {
        self.output.fail(tag, &error.into());
    }

    /// Sends an error that belongs to no request.
    pub(super) fn fail_connection(&mut self, error: &ErrorAnswer) {
        error.with_failure(|failure| self.output.send_failure(None, failure));
    }

    /// Queues an answer to a request of `size` bytes.
    pub(super) fn push(
        &mut self,
        tag: Ticket,
        charge: Option<Durable>,
        answer: Answer,
        size: usize,
    ) {
        let waiting = Waiting {
            tag,
            charge,
            answer,
        };
        self.queue.push(waiting, size);
    }

    /// Answers now if there is no charge to wait for.
    #[inline]
    pub(super) fn push_charged(&mut self, tag: Ticket, charge: Option<Durable>, answer: Answer) {
        match (charge, answer) {
            (None, Answer::Receipt(copies)) => self.output.send_receipt(tag, copies),
            (None, Answer::Copies(copies)) => self.output.send_copies(tag, copies),
            (charge, answer) => self.push(tag, charge, answer, 0),
        }
    }

    /// Counts a request that waits elsewhere.
    pub(super) fn begin_work(&mut self, size: usize) {
        self.queue.begin_work(size);
    }

    /// Ends what [`Answers::begin_work`] began.
    pub(super) fn end_work(&mut self, size: usize) {
        self.queue.end_work(size);
    }

    /// Removes a held call. Returns whether there was one.
    pub(super) fn cancel_call(&mut self, tag: Ticket) -> bool {
        let is_it =
            |waiting: &Waiting| waiting.tag == tag && matches!(waiting.answer, Answer::Call { .. });
        self.queue.remove(is_it).is_some()
    }

    /// Returns whether the bound is reached.
    pub(super) fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    /// Returns whether no answer waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns whether the client leaves so much unread that output has to wait.
    pub(super) fn is_unread(&self) -> bool {
        self.output.outlet.is_unread()
    }

    /// Sends the answers that are known, in order. The waker is woken when there may be more.
    pub(super) fn poll(&mut self, turn: &mut Turn<'_>, routes: &Routes, waker: &Waker) {
        let output = &mut self.output;
        let mut poll = |waiting: &mut Waiting| waiting.poll(turn, routes, output, waker);
        while self.queue.poll_next(&mut poll).is_some() {}
    }

    /// Writes the frames to the network, in one write.
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.output.is_unflushed) {
            self.output.outlet.outbox.flush();
        }
    }
}

impl Waiting {
    /// Sends the answer, once it is known.
    fn poll(
        &mut self,
        turn: &mut Turn<'_>,
        routes: &Routes,
        output: &mut Output,
        waker: &Waker,
    ) -> Poll<()> {
        if let Some(charge) = &self.charge {
            if let Err(unconfirmed) = ready!(charge.poll_durable(waker)) {
                let error = match self.answer {
                    Answer::Call { .. } => RequestError::NotCharged.into(),
                    _ => unconfirmed.into(),
                };
                output.fail(self.tag, &error);
                return Poll::Ready(());
            }
            self.charge = None;
        }
        let tag = self.tag;
        let sent = match &mut self.answer {
            Answer::Write(write) => ready!(write.poll_answer(waker))
                .map(|write| {
                    output.send_stored(tag, &write);
                    turn.deliver_written(write);
                })
                .map_err(ErrorAnswer::from),
            Answer::Append(append) => ready!(append.poll_answer(waker))
                .map(|appended| output.send_appended(tag, appended))
                .map_err(ErrorAnswer::from),
            Answer::Messages(append) => ready!(append.poll_answer(waker))
                .map(|appended| output.send_messages_appended(tag, &appended))
                .map_err(ErrorAnswer::from),
            Answer::Records(append) => placed(ready!(append.poll_results(waker)))
                .map(|places| {
                    let at = correlation(tag);
                    output.send(|out| {
                        wire::AppendedRecords::encode(places.into_iter(), at, out);
                    });
                })
                .map_err(ErrorAnswer::from),
            Answer::Receipt(copies) => {
                output.send_receipt(tag, *copies);
                Ok(())
            }
            Answer::Copies(copies) => {
                output.send_copies(tag, *copies);
                Ok(())
            }
            Answer::Frame(frame) => {
                output.send(|out| out.extend_from_slice(frame));
                Ok(())
            }
            Answer::Call { route, call } => routes
                .name(*route)
                .and_then(|route| Ok(turn.resume(route, tag, call)?)),
        };
        if let Err(error) = sent {
            output.fail(tag, &error);
        }
        Poll::Ready(())
    }
}

impl Output {
    fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.is_unflushed |= self.outlet.push_answer(write) == messaging::Pushed::First;
    }

    fn fail(&mut self, tag: Ticket, error: &ErrorAnswer) {
        error.with_failure(|failure| self.send_failure(Some(tag), failure));
    }

    fn send_failure(&mut self, tag: Option<Ticket>, failure: Failure<'_>) {
        self.outlet.count_failure(failure.code);
        let at = tag.map_or(wire::Correlation::NONE, correlation);
        self.send(|out| wire::encode_failure(&failure, at, out));
    }

    fn send_stored(&mut self, tag: Ticket, write: &AcceptedWrite) {
        let stored = Stored {
            offset: write.offset,
            is_duplicate: write.is_duplicate,
        };
        self.send(|out| stored.encode(correlation(tag), out));
    }

    fn send_appended(&mut self, tag: Ticket, appended: AppendedRecords) {
        let AppendedRecords { first, next } = appended;
        self.send(|out| wire::Appended { first, next }.encode(correlation(tag), out));
    }

    fn send_messages_appended(&mut self, tag: Ticket, appended: &Appended) {
        let mut ids = Vec::new();
        let appended = AppendedMessages {
            first: appended.first_seq,
            next: appended.last_seq + 1,
            deduplicated: appended.deduplicated as u32,
            made: MadeIds::encode(appended.made_ids().iter().map(String::as_str), &mut ids),
        };
        self.send(|out| appended.encode(correlation(tag), out));
    }

    fn send_receipt(&mut self, tag: Ticket, copies: Copies) {
        let Copies { delivered, dropped } = copies;
        self.send(|out| Receipt { delivered, dropped }.encode(correlation(tag), out));
    }

    fn send_copies(&mut self, tag: Ticket, copies: u32) {
        self.send(|out| wire::encode_copies(copies, correlation(tag), out));
    }
}
