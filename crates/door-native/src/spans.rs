//! Spans of the requests and deliveries of one connection, on a node that exports spans.
//!
//! A request's span lasts until its answer is queued, a delivery's until the agent has answered. They
//! end with the connection at the latest. Messages keep the trace context that they came with.

use std::collections::HashMap;
use std::sync::Arc;

use model::Name;
use parking_lot::Mutex;
use platform::{Span, SpanKind, TraceContext, Tracer};
use routing::Ticket;
use wire::{Flags, Kind, Metadata, TRACEPARENT};

use super::timing::answered;

/// Most open spans of each kind; further requests of the connection have none.
const OPEN_MAX: usize = 1_024;

/// The open spans of a connection; see the module's documentation.
pub(super) struct Spans {
    tracer: Arc<Tracer>,
    /// By slot and generation of the request.
    requests: Mutex<HashMap<u64, Span>>,
    deliveries: Mutex<HashMap<Ticket, Span>>,
}

impl Spans {
    pub(super) fn new(tracer: Arc<Tracer>) -> Self {
        Self {
            tracer,
            requests: Mutex::default(),
            deliveries: Mutex::default(),
        }
    }

    /// Begins the span of a request, unless it is not traced.
    pub(super) fn begin_request(&self, kind: Kind, tag: u64, metadata: &[u8]) {
        let (role, name) = match kind {
            Kind::WRITE => (SpanKind::Producer, "write"),
            _ => (SpanKind::Server, "request"),
        };
        let span = self
            .tracer
            .begin(parent(metadata), role, || name.to_owned());
        let mut requests = self.requests.lock();
        if let Some(span) = span
            && requests.len() < OPEN_MAX
        {
            requests.insert(tag, span);
        }
    }

    /// Adds the name that a request is for.
    pub(super) fn set_name(&self, tag: u64, name: &Name) {
        if let Some(span) = self.requests.lock().get_mut(&tag) {
            span.set_text("telpher.name", name.as_str());
        }
    }

    /// Ends the span of the request that a frame answers, if it is the last answer.
    pub(super) fn end_request(&self, frame: &[u8]) {
        let Some((tag, kind, flags)) = answered(frame) else {
            return;
        };
        if flags & Flags::MORE.0 != 0 {
            return;
        }
        let ended = self.requests.lock().remove(&tag);
        if let Some(mut span) = ended
            && kind == Kind::ERROR
        {
            span.fail("answered with an error");
        }
    }

    /// Begins the span of a delivery of a message from a mailbox.
    pub(super) fn begin_delivery(&self, ticket: Ticket, to: &Name, metadata: &[u8]) {
        let name = || "deliver".to_owned();
        let span = self
            .tracer
            .begin(parent(metadata), SpanKind::Consumer, name);
        let mut deliveries = self.deliveries.lock();
        if let Some(mut span) = span
            && deliveries.len() < OPEN_MAX
        {
            span.set_text("telpher.name", to.base());
            deliveries.insert(ticket, span);
        }
    }

    /// Ends the span of a delivery that the agent has answered.
    pub(super) fn end_delivery(&self, ticket: Ticket, is_failed: bool) {
        let ended = self.deliveries.lock().remove(&ticket);
        if let Some(mut span) = ended
            && is_failed
        {
            span.fail("the agent refused the message");
        }
    }
}

/// Returns the trace context in the metadata of a message.
fn parent(metadata: &[u8]) -> Option<TraceContext> {
    TraceContext::parse(Metadata::new(metadata).get(TRACEPARENT)?)
}
