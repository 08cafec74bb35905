//! The answering half of a connection: requests in, handlers polled, answers out.
//!
//! The same code serves a caller that is connected directly and, behind a node, whoever calls one
//! of our names; only the meaning of a route is looked up elsewhere. It appends to a buffer and
//! never writes, and it takes in no more than its limits: calls and bytes under way answer `busy`
//! above them, one-way messages beyond the window that was granted end the connection.

use std::sync::Arc;
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

use bytes::Bytes;
use model::ErrorCode;
use tokio::time::Instant;
use wire::{Bind, Credit, Flags, Header, Kind, Malformed, Payload, Window};

use super::guard;
use super::handlers::{Answer, Handlers, Run};
use super::item_sender::{ItemSender, Stream, encode_only_item, too_large};
use super::request::Request;
use super::routes::{Receiver, Route, RouteTable};
use super::running::{Ended, Jobs, Origin, Running};
use crate::context::{Binding, Context};
use crate::core::Core;
use crate::envelope::{Envelope, ReplyTo};
use crate::fault::{Fault, Ran};
use crate::metadata::Metadata;
use crate::port::Port;
use crate::registry;

/// Where the meaning of a route is looked up.
pub(crate) enum Resolver {
    /// A server: by method.
    Methods(Arc<Handlers>),
    /// A client of a node: by the name that was subscribed, then by method.
    Names(Arc<Core>),
}

/// Why the peer cannot be listened to any longer.
pub(crate) struct Violation(pub(crate) String);

impl From<Malformed> for Violation {
    fn from(malformed: Malformed) -> Self {
        Self(malformed.to_string())
    }
}

pub(crate) struct Responder {
    resolver: Resolver,
    port: Arc<Port>,
    routes: RouteTable,
    jobs: Jobs,
    /// What this side takes in.
    window: Window,
    /// Bytes of requests under way.
    requests_size_max: usize,
    /// What the peer takes in.
    peer_frame_size_max: u32,
    /// One-way messages and bytes that ever arrived.
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
            port,
            routes: RouteTable::default(),
            jobs: Jobs::new(),
            window,
            requests_size_max,
            peer_frame_size_max,
            received: (0, 0),
            consumed: NO_CREDIT,
            clock: TurnClock::default(),
        }
    }

    pub(crate) fn register(&self, task: &Waker) {
        self.port.register(task);
        self.jobs.register(task);
    }

    /// Whether no handler is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.count() == 0 && self.port.held_size() == 0
    }

    pub(crate) fn deadline_min(&self) -> Option<Instant> {
        self.jobs.deadline_min()
    }

    /// Polls the handlers that were woken, while `out` holds less than `high_mark`, and gathers
    /// what was queued from outside.
    pub(crate) fn poll(&mut self, high_mark: usize, out: &mut Vec<u8>) {
        self.clock.reset();
        if out.len() >= high_mark {
            return;
        }
        if self.jobs.is_ready() {
            self.jobs.gather();
            while out.len() < high_mark
                && let Some(ended) = self.jobs.next_ended()
            {
                self.finish(ended, out);
            }
            self.return_credit();
        }
        self.port.drain_into(out);
    }

    /// Drops the handlers whose time is up.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<u8>) {
        for ended in self.jobs.expire(now) {
            self.refuse(ended, ErrorCode::DeadlineExceeded, LATE, out);
        }
        self.return_credit();
    }

    /// Takes one frame that belongs to this half.
    pub(crate) fn take(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        match header.kind {
            Kind::REQUEST => self.take_request(header, payload, out)?,
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

    /// A frame above the limit that was skipped.
    pub(crate) fn take_oversize(&mut self, header: Header, out: &mut Vec<u8>) {
        match header.kind {
            Kind::REQUEST => {
                let limit = self.window.frame_size_max;
                let size = header.length;
                let message = format!("a request of {size} bytes is above the limit of {limit}");
                let fault = Fault::with_code(ErrorCode::TooLarge, message);
                fault.encode(Ran::No, header.correlation, out);
            }
            Kind::SEND => {
                self.received.0 += 1;
                self.received.1 += u64::from(header.length);
                self.port.consume(1, header.length.into());
            }
            _ => {}
        }
    }

    /// The end of a chunk: what was consumed in it is returned at once.
    pub(crate) fn return_credit(&mut self) {
        if self.consumed.messages > 0 {
            let Credit { messages, bytes } = std::mem::replace(&mut self.consumed, NO_CREDIT);
            self.port.consume(messages, bytes);
        }
    }

    fn bind(&mut self, bind: Bind<'_>) {
        let binding = Arc::new(Binding {
            method: bind.method.into(),
            name: bind.name.into(),
            port: self.port.clone(),
        });
        let receiver = self.resolver.receiver(&binding);
        self.routes.insert(bind.route, Route { binding, receiver });
    }

    fn take_request(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let message = Payload::decode(header.flags, payload)?;
        let correlation = header.correlation;
        if let Some(fault) = self.refusal(payload.len()) {
            fault.encode(Ran::No, correlation, out);
            return Ok(());
        }
        let deadline = match self.clock.deadline(message.deadline_ms) {
            Ok(deadline) => deadline,
            Err(Expired) => {
                let fault = Fault::with_code(ErrorCode::DeadlineExceeded, "expired before it ran");
                fault.encode(Ran::No, correlation, out);
                return Ok(());
            }
        };
        let origin = Origin::Call {
            correlation,
            wants_stream: header.flags.contains(Flags::STREAM),
        };
        self.dispatch(header.route, origin, message, payload.len(), deadline, out);
        Ok(())
    }

    fn take_send(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let message = Payload::decode(header.flags, payload)?;
        self.check_credit(payload.len())?;
        match self.clock.deadline(message.deadline_ms) {
            Ok(deadline) => {
                let size = payload.len();
                self.dispatch(header.route, Origin::OneWay, message, size, deadline, out);
            }
            Err(Expired) => self.consume(payload.len()),
        }
        Ok(())
    }

    /// Why no further request is taken in.
    fn refusal(&self, size: usize) -> Option<Fault> {
        let held = self.jobs.size() + self.port.held_size();
        let message = if self.jobs.count() >= self.window.calls_max as usize {
            format!("{} calls are under way here", self.jobs.count())
        } else if held > 0 && held + size > self.requests_size_max {
            format!("requests of {held} bytes are under way here")
        } else {
            return None;
        };
        Some(Fault::with_code(ErrorCode::Busy, message))
    }

    fn check_credit(&mut self, size: usize) -> Result<(), Violation> {
        let (returned_messages, returned_bytes) = self.port.returned();
        let messages = self.received.0 - returned_messages;
        let bytes = self.received.1 - returned_bytes + size as u64;
        self.received.0 += 1;
        self.received.1 += size as u64;
        let fits = bytes <= self.window.credit_bytes || messages == 0;
        match fits && messages < u64::from(self.window.credit_messages) {
            true => Ok(()),
            false => Err(Violation("one-way messages beyond the credit".to_owned())),
        }
    }

    fn dispatch(
        &mut self,
        number: u16,
        origin: Origin,
        message: Payload<'_>,
        size: usize,
        deadline: Option<Instant>,
        out: &mut Vec<u8>,
    ) {
        let Some(route) = self.routes.get_mut(number) else {
            let message = format!("route {number} is not bound");
            let fault = Fault::with_code(ErrorCode::InvalidArgument, message);
            return self.decline(origin, &fault, size, out);
        };
        if let Receiver::Mailbox(mailbox) = &route.receiver
            && mailbox.is_closed()
        {
            route.receiver = self.resolver.receiver(&route.binding);
        }
        let context = Context {
            binding: route.binding.clone(),
            metadata: Metadata::from_block(message.metadata),
            deadline,
        };
        let body = Bytes::copy_from_slice(message.body);
        match &mut route.receiver {
            Receiver::Handler(_) => self.run(number, origin, Request { body, context }, size, out),
            Receiver::Mailbox(mailbox) => {
                let reply = match origin {
                    Origin::OneWay => None,
                    Origin::Call {
                        correlation,
                        wants_stream,
                    } => Some(ReplyTo::new(
                        self.port.clone(),
                        correlation,
                        wants_stream,
                        size,
                        self.peer_frame_size_max,
                    )),
                };
                mailbox.push(Envelope::new(body, context, reply), size);
            }
            Receiver::Nobody(fault) => {
                let fault = fault.clone();
                self.decline(origin, &fault, size, out);
            }
        }
    }

    fn run(
        &mut self,
        number: u16,
        origin: Origin,
        request: Request,
        size: usize,
        out: &mut Vec<u8>,
    ) {
        let Some(Route {
            receiver: Receiver::Handler(runner),
            ..
        }) = self.routes.get_mut(number)
        else {
            return;
        };
        let stream = match origin {
            Origin::Call {
                correlation,
                wants_stream: true,
            } if runner.streams() => {
                let limit = self.peer_frame_size_max;
                Some(Arc::new(Stream::new(self.port.clone(), correlation, limit)))
            }
            _ => None,
        };
        let items = stream.clone().map(ItemSender::new);
        let deadline = request.context.deadline;
        let mut cx = TaskContext::from_waker(self.jobs.next_waker());
        let answer = match guard::catch(|| runner.run(request, items, &mut cx)) {
            Ok(Run::Done(answer)) => answer,
            Err(panicked) => Err(panicked),
            Ok(Run::Later(job)) => {
                return self.jobs.insert(Running {
                    job,
                    origin,
                    size,
                    deadline,
                    stream,
                });
            }
        };
        if let Some(stream) = &stream {
            stream.close();
        }
        let answer = Some(answer);
        let ended = Ended {
            origin,
            size,
            stream,
            answer,
        };
        self.finish(ended, out);
    }

    /// A handler that answered.
    fn finish(&mut self, ended: Ended, out: &mut Vec<u8>) {
        let Origin::Call {
            correlation,
            wants_stream,
        } = ended.origin
        else {
            return self.consume(ended.size);
        };
        let limit = self.peer_frame_size_max;
        if ended.stream.is_some() {
            // The items stand before the end.
            self.port.drain_into(out);
        }
        let answer = ended.answer.unwrap_or_else(|| Ok(Bytes::new()));
        match check_size(answer, limit) {
            Ok(_) if ended.stream.is_some() => {
                Payload::body(&[]).encode(Kind::REPLY, Flags::NONE, 0, correlation, out);
            }
            Ok(body) if wants_stream => encode_only_item(&body, correlation, out),
            Ok(body) => {
                Payload::body(&body).encode(Kind::REPLY, Flags::NONE, 0, correlation, out);
            }
            Err(fault) => fault.encode(Ran::Yes, correlation, out),
        }
    }

    /// A handler that was dropped.
    fn refuse(&mut self, ended: Ended, code: ErrorCode, message: &str, out: &mut Vec<u8>) {
        match ended.origin {
            Origin::OneWay => self.consume(ended.size),
            Origin::Call { correlation, .. } => {
                if ended.stream.is_some() {
                    self.port.drain_into(out);
                }
                Fault::with_code(code, message).encode(Ran::Yes, correlation, out);
            }
        }
    }

    /// A message that no handler saw.
    fn decline(&mut self, origin: Origin, fault: &Fault, size: usize, out: &mut Vec<u8>) {
        match origin {
            Origin::OneWay => self.consume(size),
            Origin::Call { correlation, .. } => fault.encode(Ran::No, correlation, out),
        }
    }

    fn consume(&mut self, size: usize) {
        self.consumed.messages += 1;
        self.consumed.bytes += size as u64;
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.port.close();
    }
}

const NO_CREDIT: Credit = Credit {
    messages: 0,
    bytes: 0,
};

const LATE: &str = "the handler did not finish in time and was dropped";

fn check_size(answer: Answer, limit: u32) -> Answer {
    match answer {
        Ok(body) if body.len() > limit as usize => Err(too_large("the reply", body.len(), limit)),
        answer => answer,
    }
}

impl Resolver {
    fn receiver(&self, binding: &Binding) -> Receiver {
        let found = match self {
            Self::Methods(handlers) => handlers.runner(&binding.method).map(Receiver::Handler),
            Self::Names(core) => match core.receiver(&binding.name) {
                Some(registry::Receiver {
                    handlers: Some(handlers),
                    ..
                }) => handlers.runner(&binding.method).map(Receiver::Handler),
                Some(registry::Receiver { mailbox, .. }) => Ok(Receiver::Mailbox(mailbox)),
                None => {
                    let message = format!("nobody is subscribed to `{}` here", binding.name);
                    Err(Fault::with_code(ErrorCode::NoResponder, message))
                }
            },
        };
        found.unwrap_or_else(Receiver::Nobody)
    }
}

/// The time of a request came before its turn did.
struct Expired;

/// The clock as the requests of one turn see it: read once, and again now and then, because the
/// handlers of earlier requests take time too.
#[derive(Default)]
struct TurnClock {
    start: Option<Instant>,
    now: Option<Instant>,
    uses: u32,
}

/// A request with less time than this gets an exact look at the clock.
const URGENT_MS: u32 = 1_000;

impl TurnClock {
    fn reset(&mut self) {
        *self = Self::default();
    }

    /// The deadline of a request that has so much time left.
    fn deadline(&mut self, remaining_ms: Option<u32>) -> Result<Option<Instant>, Expired> {
        let Some(milliseconds) = remaining_ms else {
            return Ok(None);
        };
        let start = *self.start.get_or_insert_with(Instant::now);
        let now = match self.now {
            Some(now) if milliseconds >= URGENT_MS && !self.uses.is_multiple_of(16) => now,
            Some(_) => Instant::now(),
            None => start,
        };
        self.now = Some(now);
        self.uses += 1;
        let deadline = start + Duration::from_millis(milliseconds.into());
        if deadline <= now { Err(Expired) } else { Ok(Some(deadline)) }
    }
}
