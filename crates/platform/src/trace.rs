//! Spans of requests for OpenTelemetry, with the trace context of W3C.
//!
//! A [`Tracer`] decides which requests are traced and holds their finished spans in a bounded queue,
//! from which an exporter takes them. A full queue drops spans and counts them. A node without a
//! tracer makes no spans.
//!
//! Sources: <https://www.w3.org/TR/trace-context/>,
//! <https://opentelemetry.io/docs/specs/otel/trace/sdk/#sampling>.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::clock::Ports;

/// Difference between the wall clock and the tracer's own time from which the wall clock counts.
const STEP_NS: u64 = 2_000_000;

/// The position in a trace, as a `traceparent` states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Number of the trace; not 0.
    pub trace_id: u128,
    /// Number of the span; not 0.
    pub span_id: u64,
    /// True if the trace is recorded.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Parses a `traceparent`. Returns `None` if it is invalid; it is ignored then, as the
    /// recommendation demands.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim();
        let mut parts = text.splitn(5, '-');
        let version = hex(parts.next()?, 2)?;
        let trace_id = hex(parts.next()?, 32)?;
        let span_id = u64::try_from(hex(parts.next()?, 16)?).ok()?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may have further parts.
        let is_known = version != 0xff && (version != 0 || parts.next().is_none());
        (is_known && trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags & 1 == 1,
        })
    }
}

/// Parses lower-case hexadecimal digits of exactly this number.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_valid = text.len() == digits && text.bytes().all(is_digit);
    is_valid.then(|| u128::from_str_radix(text, 16).ok())?
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(
            f,
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        )
    }
}

/// The role of a span. The numbers are those of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// The answer to a request of a client.
    Server = 2,
    /// A request to a server.
    Client = 3,
    /// The storage of a message that is delivered later.
    Producer = 4,
    /// The delivery of such a message.
    Consumer = 5,
}

/// The value of a span's attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSpan {
    /// Its place in the trace.
    pub context: TraceContext,
    /// The span that caused it; `None` at the beginning of a trace.
    pub parent: Option<u64>,
    /// Its role.
    pub kind: SpanKind,
    /// Its name, of few different ones.
    pub name: String,
    /// Nanoseconds since 1970-01-01 UTC.
    pub begin_unix_ns: u64,
    /// Nanoseconds since 1970-01-01 UTC.
    pub end_unix_ns: u64,
    /// Its attributes.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Places in other traces that it belongs to, such as those of the records of a request.
    pub links: Vec<TraceContext>,
    /// The reason if what it describes failed.
    pub error: Option<String>,
}

/// Options of a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracerOptions {
    /// Traces that begin here and are recorded, of a million.
    pub sampled_ppm: u32,
    /// Maximum number of ended spans that wait for the exporter.
    pub queue_max: usize,
}

/// Decides which requests are traced, and holds ended spans; see the module's documentation.
pub struct Tracer {
    ports: Ports,
    options: TracerOptions,
    queue: Mutex<VecDeque<EndedSpan>>,
    /// Difference between the wall clock and the monotonic clock.
    offset_ns: AtomicU64,
    exported: AtomicU64,
    dropped: AtomicU64,
    failures: AtomicU64,
}

/// Counts of a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracerCounts {
    /// Spans that the collector has accepted.
    pub exported: u64,
    /// Spans that were dropped: the queue was full, or the collector refused them.
    pub dropped: u64,
    /// Requests to the collector that failed.
    pub failures: u64,
    /// Spans that wait.
    pub waiting: usize,
}

impl Tracer {
    /// Creates a tracer with an empty queue.
    pub fn new(ports: Ports, options: TracerOptions) -> Self {
        Self {
            ports,
            options,
            queue: Mutex::default(),
            offset_ns: AtomicU64::new(0),
            exported: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Begins a span if the request is traced: if its parent is, or, without a parent, if it is one
    /// of the sampled share.
    pub fn begin(
        self: &Arc<Self>,
        parent: Option<TraceContext>,
        kind: SpanKind,
        name: impl FnOnce() -> String,
    ) -> Option<Span> {
        let entropy = &self.ports.entropy;
        let trace_id = match parent {
            Some(parent) if parent.is_sampled => parent.trace_id,
            Some(_) => return None,
            None => {
                let low = entropy.next_u64();
                // The low half decides, as in other samplers by ratio.
                let is_sampled = low % 1_000_000 < u64::from(self.options.sampled_ppm);
                if !is_sampled {
                    return None;
                }
                u128::from(entropy.next_u64()) << 64 | u128::from(low.max(1))
            }
        };
        let begin_unix_ns = self.unix_ns();
        Some(Span {
            tracer: self.clone(),
            span: EndedSpan {
                context: TraceContext {
                    trace_id,
                    span_id: entropy.next_u64().max(1),
                    is_sampled: true,
                },
                parent: parent.map(|it| it.span_id),
                kind,
                name: name(),
                begin_unix_ns,
                end_unix_ns: begin_unix_ns,
                attributes: Vec::new(),
                links: Vec::new(),
                error: None,
            },
        })
    }

    /// Takes at most `max` ended spans, oldest first.
    pub fn take(&self, max: usize) -> Vec<EndedSpan> {
        let mut queue = self.queue.lock();
        let count = queue.len().min(max);
        queue.drain(..count).collect()
    }

    /// Counts spans that the collector has accepted.
    pub fn count_exported(&self, spans: usize) {
        self.exported.fetch_add(spans as u64, Ordering::Relaxed);
    }

    /// Counts spans that the collector refused.
    pub fn count_dropped(&self, spans: usize) {
        self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
    }

    /// Counts a failed request to the collector.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts.
    pub fn counts(&self) -> TracerCounts {
        TracerCounts {
            exported: self.exported.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            waiting: self.queue.lock().len(),
        }
    }

    /// Returns the wall clock in nanoseconds. It advances with the monotonic clock, because the wall
    /// clock has milliseconds, and follows steps of the wall clock.
    fn unix_ns(&self) -> u64 {
        let clock = &self.ports.clock;
        let (now_ns, wall_ns) = (clock.now_ns(), clock.unix_ms() * 1_000_000);
        let unix_ns = now_ns.wrapping_add(self.offset_ns.load(Ordering::Relaxed));
        if unix_ns.abs_diff(wall_ns) <= STEP_NS {
            return unix_ns;
        }
        let offset_ns = wall_ns.wrapping_sub(now_ns);
        self.offset_ns.store(offset_ns, Ordering::Relaxed);
        wall_ns
    }

    fn push(&self, span: EndedSpan) {
        let mut queue = self.queue.lock();
        if queue.len() >= self.options.queue_max {
            drop(queue);
            return self.count_dropped(1);
        }
        queue.push_back(span);
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({:?})", self.options)
    }
}

/// A span that has begun. It ends when it is dropped.
#[derive(Debug)]
pub struct Span {
    tracer: Arc<Tracer>,
    span: EndedSpan,
}

impl Span {
    /// Returns its place in the trace, for a `traceparent` that its effects carry.
    pub fn context(&self) -> TraceContext {
        self.span.context
    }

    /// Adds an attribute with a text.
    pub fn set_text(&mut self, name: &'static str, value: impl Into<String>) {
        let value = AttributeValue::Text(value.into());
        self.span.attributes.push((name, value));
    }

    /// Adds an attribute with a number.
    pub fn set_number(&mut self, name: &'static str, value: impl Into<i64>) {
        let value = AttributeValue::Number(value.into());
        self.span.attributes.push((name, value));
    }

    /// Links a place in another trace.
    pub fn link(&mut self, context: TraceContext) {
        self.span.links.push(context);
    }

    /// Marks the span as failed.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.span.error = Some(reason.into());
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let mut span = EndedSpan {
            name: std::mem::take(&mut self.span.name),
            attributes: std::mem::take(&mut self.span.attributes),
            links: std::mem::take(&mut self.span.links),
            error: self.span.error.take(),
            ..self.span
        };
        span.end_unix_ns = self.tracer.unix_ns().max(span.begin_unix_ns);
        self.tracer.push(span);
    }
}

#[cfg(test)]
mod tests;
