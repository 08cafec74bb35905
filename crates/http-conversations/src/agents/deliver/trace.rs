//! Trace context of webhook calls.
//!
//! A message continues a trace if its metadata have a `traceparent`. The call for it has this trace
//! context, or, on a node that exports spans, that of the call's own span.

use conversation_service::ContextRead;
use node::Node;
use platform::{Span, SpanKind, TraceContext};
use serde::Deserialize;
use webhooks::Call;

/// The trace context of a call, and its span if it is traced.
pub(super) struct CallTrace {
    parent: Option<TraceContext>,
    span: Option<Span>,
}

/// The part of a message's metadata that is read here.
#[derive(Deserialize)]
struct TraceMetadata {
    traceparent: Option<String>,
}

impl CallTrace {
    /// Begins the span of a call, unless it is not traced.
    pub(super) fn begin(call: &Call, node: &Node, context: &ContextRead) -> Self {
        let parent = parent(call, context);
        let name = || "webhook".to_owned();
        let span = node
            .tracer()
            .and_then(|tracer| tracer.begin(parent, SpanKind::Client, name));
        let span = span.map(|mut span| {
            span.set_text("telpher.agent", call.agent());
            span.set_text("telpher.conversation", call.conversation().as_str());
            span.set_number("telpher.attempt", call.attempt());
            span
        });
        Self { parent, span }
    }

    /// Returns the trace context for the call.
    pub(super) fn traceparent(&self) -> Option<String> {
        let own = self.span.as_ref().map(Span::context);
        own.or(self.parent).map(|context| context.to_string())
    }

    /// Adds the status of the answer.
    pub(super) fn set_status(&mut self, status: u16) {
        if let Some(span) = &mut self.span {
            span.set_number("http.response.status_code", status);
        }
    }

    /// Marks the call as failed.
    pub(super) fn fail(&mut self, reason: &str) {
        if let Some(span) = &mut self.span {
            span.fail(reason);
        }
    }
}

/// Returns the trace context of the newest message that the call is for.
fn parent(call: &Call, context: &ContextRead) -> Option<TraceContext> {
    let messages: Vec<_> = context.messages().filter_map(Result::ok).collect();
    let asked = messages.iter().rev().map(|it| &it.message);
    let mut asked = asked.filter(|it| (call.from_seq()..=call.to_seq()).contains(&it.seq));
    asked.find_map(|message| {
        let metadata: TraceMetadata = serde_json::from_slice(message.view.metadata).ok()?;
        TraceContext::parse(metadata.traceparent?.as_bytes())
    })
}
