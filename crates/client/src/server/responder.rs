//! `Responder`: the answering half of a connection, which decodes requests, runs handlers and
//! encodes replies.
//!
//! A responder serves clients that are connected directly and, behind a node, callers of a name;
//! only the [`Resolver`] differs. It appends to a buffer and never writes. Its limits bound memory:
//! calls and bytes above them are answered with `busy`, and one-way messages beyond the granted
//! window end the connection.

use std::sync::Arc;
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

use model::ErrorCode;
use tokio::time::Instant;
use wire::{Bind, Credit, Flags, Header, Kind, Malformed, Payload, Window};

use super::arrival::Arrival;
use super::guard;
use super::item_sender::ItemSender;
use super::jobs::{EndedHandler, Jobs, RunningHandler};
use super::reply::{Origin, Outlet, Reply};
use super::resolver::Resolver;
use super::routes::{Receiver, Route, RouteTable};
use super::turn_clock::{DeadlinePassed, TurnClock};
use crate::agents::envelope::{Envelope, ReplyTo};
use crate::connection::binding::Binding;
use crate::connection::port::Port;
use crate::context::Delivery;
use crate::fault::{Execution, Fault};

/// Violation of the protocol by the peer.
pub(crate) struct Violation(pub(crate) String);

impl From<Malformed> for Violation {
    fn from(malformed: Malformed) -> Self {
        Self(malformed.to_string())
    }
}

/// The answering half of a connection.
pub(crate) struct Responder {
    resolver: Resolver,
    outlet: Outlet,
    routes: RouteTable,
    jobs: Jobs,
    /// Limits of this side.
    window: Window,
    /// Maximum bytes of requests in flight.
    requests_size_max: usize,
    /// One-way messages, and their bytes, received so far.
    received: (u64, u64),
    /// One-way messages that handlers consumed in this turn.
    consumed: Credit,
    clock: TurnClock,
}

impl Responder {
    pub(crate) fn new(
        resolver: Resolver,
        port: Arc<Port>,
        window: Window,
        requests_size_max: usize,
        peer_frame_size_max: u32,
    ) -> Self {
        Self {
            resolver,
            outlet: Outlet {
                port,
                frame_size_max: peer_frame_size_max,
            },
            routes: RouteTable::default(),
            jobs: Jobs::new(),
            window,
            requests_size_max,
            received: (0, 0),
            consumed: NO_CREDIT,
            clock: TurnClock::default(),
        }
    }

    pub(crate) fn register(&self, task: &Waker) {
        self.outlet.port.register(task);
        self.jobs.register(task);
    }

    /// Returns the drain time if GOAWAY is to be sent.
    pub(crate) fn drain_time(&self) -> Option<Duration> {
        self.outlet.port.drain_time()
    }

    /// True if handlers were woken or frames were queued by other tasks.
    pub(crate) fn has_work(&self) -> bool {
        self.jobs.is_ready() || self.outlet.port.is_dirty()
    }

    /// True if no handler is in progress and no request is unanswered.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.count() == 0 && self.outlet.port.held_size() == 0
    }

    pub(crate) fn deadline_min(&self) -> Option<Instant> {
        self.jobs.deadline_min()
    }

    /// Polls the handlers that were woken, while `out` is smaller than `high_mark`, and collects
    /// frames queued by other tasks.
    pub(crate) fn poll(&mut self, high_mark: usize, out: &mut Vec<u8>) {
        self.clock.reset();
        if out.len() >= high_mark {
            return;
        }
        if self.jobs.is_ready() {
            self.jobs.gather();
            while out.len() < high_mark
                && let Some(ended) = self.jobs.next_ended(&self.outlet, out)
            {
                if let Origin::OneWay = ended.origin {
                    self.consume(ended.size);
                }
            }
            self.return_credit();
        }
        self.outlet.port.drain_into(out);
    }

    /// Drops the handlers whose deadline has passed.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<u8>) {
        for ended in self.jobs.expire(now) {
            self.refuse(ended, ErrorCode::DeadlineExceeded, DEADLINE_PASSED, out);
        }
        self.return_credit();
    }

    /// Processes a frame for this half other than REQUEST.
    pub(crate) fn take(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        match header.kind {
            Kind::SEND => self.take_send(header, payload, out)?,
            Kind::BIND => self.bind(Bind::decode(header.route, payload)?),
            Kind::CANCEL => {
                if let Some(ended) = self.jobs.cancel(header.correlation) {
                    self.refuse(ended, ErrorCode::Cancelled, "cancelled by the caller", out);
                }
            }
            Kind::CREDIT => {
                let credit = Credit::decode(payload)?;
                if let Some(stream) = self.jobs.stream(header.correlation) {
                    stream.credit(credit.messages);
                }
            }
            kind => unreachable!("{kind:?} does not belong to the answering half"),
        }
        Ok(())
    }

    /// Processes a skipped frame above the size limit.
    pub(crate) fn take_oversize(&mut self, header: Header, out: &mut Vec<u8>) {
        match header.kind {
            Kind::REQUEST => {
                let limit = self.window.frame_size_max;
                let size = header.length;
                let message = format!(
                    "a request of {size} bytes is above the limit of {limit} (`frame_size_max`)"
                );
                let fault = Fault::with_code(ErrorCode::TooLarge, message);
                fault.encode(Execution::NotStarted, header.correlation, out);
            }
            Kind::SEND => {
                self.received.0 += 1;
                self.received.1 += u64::from(header.length);
                self.outlet.port.consume(1, header.length.into());
            }
            _ => {}
        }
    }

    /// Returns the credit consumed in a chunk.
    pub(crate) fn return_credit(&mut self) {
        if self.consumed.messages > 0 {
            let Credit { messages, bytes } = std::mem::replace(&mut self.consumed, NO_CREDIT);
            self.outlet.port.consume(messages, bytes);
        }
    }

    fn bind(&mut self, bind: Bind<'_>) {
        let binding = Arc::new(Binding {
            method: bind.method.into(),
            name: bind.name.into(),
            port: self.outlet.port.clone(),
        });
        let receiver = self.resolver.receiver(&binding);
        self.routes.insert(bind.route, Route { binding, receiver });
    }

    /// Processes a REQUEST.
    #[inline]
    pub(crate) fn take_request(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let mut message = Payload::decode(header.flags, payload)?;
        let delivery = match header.flags.contains(Flags::WRITTEN) {
            true => Some(split_delivery(&mut message)?),
            false => None,
        };
        let correlation = header.correlation;
        if self.is_full(payload.len()) {
            self.full().encode(Execution::NotStarted, correlation, out);
            return Ok(());
        }
        let deadline = match self.clock.deadline(message.deadline_ms) {
            Ok(deadline) => deadline,
            Err(DeadlinePassed) => {
                expired_before_start().encode(Execution::NotStarted, correlation, out);
                return Ok(());
            }
        };
        let origin = Origin::Call {
            correlation,
            wants_stream: header.flags.contains(Flags::STREAM),
        };
        let incoming = IncomingMessage {
            message: &message,
            delivery: delivery.as_ref(),
            size: payload.len(),
            deadline,
        };
        self.dispatch(header.route, origin, incoming, out);
        Ok(())
    }

    fn take_send(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let message = Payload::decode(header.flags, payload)?;
        // The protocol counts the bytes of metadata and body.
        let size = message.metadata.len() + message.body.len();
        self.check_credit(size)?;
        match self.clock.deadline(message.deadline_ms) {
            Ok(deadline) => {
                let incoming = IncomingMessage {
                    message: &message,
                    delivery: None,
                    size,
                    deadline,
                };
                self.dispatch(header.route, Origin::OneWay, incoming, out);
            }
            Err(DeadlinePassed) => self.consume(size),
        }
        Ok(())
    }

    /// True if a request of this size exceeds the limits.
    #[inline]
    fn is_full(&self, size: usize) -> bool {
        let held = self.jobs.size() + self.outlet.port.held_size();
        let is_too_much = held > 0 && held + size > self.requests_size_max;
        is_too_much || self.jobs.count() >= self.window.calls_max as usize
    }

    #[cold]
    fn full(&self) -> Fault {
        let count = self.jobs.count();
        let size = self.jobs.size() + self.outlet.port.held_size();
        let message =
            format!("{count} calls and {size} bytes of requests are in flight on this connection");
        Fault::with_code(ErrorCode::Busy, message)
    }

    fn check_credit(&mut self, size: usize) -> Result<(), Violation> {
        let (returned_messages, returned_bytes) = self.outlet.port.returned();
        let messages = self.received.0 - returned_messages;
        let bytes = self.received.1 - returned_bytes + size as u64;
        self.received.0 += 1;
        self.received.1 += size as u64;
        let fits = bytes <= self.window.credit_bytes || messages == 0;
        match fits && messages < u64::from(self.window.credit_messages) {
            true => Ok(()),
            false => Err(Violation(
                "one-way messages exceed the granted credit".to_owned(),
            )),
        }
    }

    fn dispatch(
        &mut self,
        number: u16,
        origin: Origin,
        incoming: IncomingMessage<'_>,
        out: &mut Vec<u8>,
    ) {
        let IncomingMessage {
            message,
            delivery,
            size,
            deadline,
        } = incoming;
        let Some(route) = self.routes.get_mut(number) else {
            return self.refuse_unstarted(origin, &not_bound(number), size, out);
        };
        if let Receiver::Queue(queue) = &route.receiver
            && queue.is_closed()
        {
            route.receiver = self.resolver.receiver(&route.binding);
        }
        let arrival = Arrival {
            binding: &route.binding,
            message,
            deadline,
            delivery,
        };
        match &mut route.receiver {
            Receiver::Handler(runner) => {
                let stream = match origin {
                    Origin::Call {
                        correlation,
                        wants_stream: true,
                    } if runner.streams() => Some(self.outlet.stream(correlation)),
                    _ => None,
                };
                let items = stream.clone().map(ItemSender::new);
                let mut cx = TaskContext::from_waker(self.jobs.next_waker());
                let mut reply = Reply::new(&origin, stream.as_deref(), &self.outlet, out);
                match guard::catch(|| runner.run(&arrival, items, &mut cx, &mut reply)) {
                    Ok(None) => {}
                    Err(panicked) => reply.refuse(&panicked),
                    Ok(Some(job)) => {
                        return self.jobs.insert(RunningHandler {
                            job,
                            origin,
                            size,
                            deadline,
                            stream,
                        });
                    }
                }
                if let Origin::OneWay = origin {
                    self.consume(size);
                }
            }
            Receiver::Queue(queue) => {
                let reply = match origin {
                    Origin::OneWay => None,
                    Origin::Call {
                        correlation,
                        wants_stream,
                    } => Some(ReplyTo::new(
                        self.outlet.port.clone(),
                        correlation,
                        wants_stream,
                        size,
                        self.outlet.frame_size_max,
                    )),
                };
                let envelope = Envelope::new(arrival.body(), arrival.context(), reply);
                queue.push(envelope, size);
            }
            Receiver::None(fault) => {
                let fault = fault.clone();
                self.refuse_unstarted(origin, &fault, size, out);
            }
        }
    }

    /// Answers the call of a handler that was dropped.
    fn refuse(&mut self, ended: EndedHandler, code: ErrorCode, message: &str, out: &mut Vec<u8>) {
        match ended.origin {
            Origin::OneWay => self.consume(ended.size),
            Origin::Call { correlation, .. } => {
                if ended.stream.is_some() {
                    self.outlet.port.drain_into(out);
                }
                Fault::with_code(code, message).encode(Execution::Started, correlation, out);
            }
        }
    }

    /// Answers a message whose handler was not started.
    #[cold]
    fn refuse_unstarted(&mut self, origin: Origin, fault: &Fault, size: usize, out: &mut Vec<u8>) {
        match origin {
            Origin::OneWay => self.consume(size),
            Origin::Call { correlation, .. } => {
                fault.encode(Execution::NotStarted, correlation, out)
            }
        }
    }

    fn consume(&mut self, size: usize) {
        self.consumed.messages += 1;
        self.consumed.bytes += size as u64;
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.outlet.port.close();
    }
}

/// A message to dispatch.
struct IncomingMessage<'a> {
    message: &'a Payload<'a>,
    delivery: Option<&'a Delivery>,
    /// Bytes that count as in flight until the answer.
    size: usize,
    deadline: Option<Instant>,
}

#[cold]
fn expired_before_start() -> Fault {
    Fault::with_code(
        ErrorCode::DeadlineExceeded,
        "the deadline passed before the handler started",
    )
}

#[cold]
fn not_bound(route: u16) -> Fault {
    let message = format!("route {route} is not bound");
    Fault::with_code(ErrorCode::InvalidArgument, message)
}

/// Splits the delivery from the front of the body.
#[cold]
fn split_delivery(message: &mut Payload<'_>) -> Result<Delivery, Malformed> {
    let (delivery, body) = wire::Delivery::split(message.body)?;
    message.body = body;
    Ok(Delivery {
        offset: delivery.offset,
        number: delivery.delivery,
        written_ms: delivery.written_ms,
    })
}

const NO_CREDIT: Credit = Credit {
    messages: 0,
    bytes: 0,
};

const DEADLINE_PASSED: &str = "the deadline passed; the handler was dropped";

#[cfg(test)]
mod tests;
