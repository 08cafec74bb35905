//! Spans of the requests of Kafka clients, on a node that exports spans.
//!
//! A request's span lasts from its decoding to its answer, waits for records and for the disk included.
//! The span of a Produce links the traces of the records: a trace context is in the header
//! `traceparent` of a record, and only the first record of each uncompressed batch is looked at, so
//! that no batch is decompressed for it.

use std::sync::Arc;

use kafka::{ErrorCode, Request, RequestHeader, produce};
use platform::{Span, SpanKind, TraceContext, Tracer};
use recordbatch::{Batch, Compression, Records};

/// Most traces that a span links.
const LINKS_MAX: usize = 16;

/// The header of a record with its trace context.
const TRACEPARENT: &str = "traceparent";

/// Begins the span of a request, unless it is not traced.
pub(super) fn begin(
    tracer: &Arc<Tracer>,
    header: &RequestHeader<'_>,
    request: &Request,
) -> Option<Box<Span>> {
    let api = header.key.api().name;
    let mut span = tracer.begin(None, SpanKind::Server, || format!("kafka {api}"))?;
    span.set_text("messaging.system", "kafka");
    span.set_text("telpher.kafka.api", api);
    if let Some(client_id) = header.client_id {
        span.set_text("messaging.client.id", client_id);
    }
    if let Some(count) = topic_count(request) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        span.set_number("telpher.kafka.topics", count);
    }
    if let Request::Produce(produce) = request {
        let contexts = produce.topic_data.iter().flat_map(|it| &it.partition_data);
        let contexts = contexts.filter_map(context);
        contexts.take(LINKS_MAX).for_each(|it| span.link(it));
    }
    Some(Box::new(span))
}

/// Ends the span of a request that was answered with these error codes.
pub(super) fn end(mut span: Span, errors: &[ErrorCode]) {
    let mut errors = errors.iter().filter(|it| **it != ErrorCode::None);
    if let Some(error) = errors.next() {
        span.set_text("telpher.kafka.error", format!("{error:?}"));
        span.fail(format!("{error:?}"));
    }
}

/// Returns the number of topics that a request names; `None` for requests about other things.
fn topic_count(request: &Request) -> Option<usize> {
    Some(match request {
        Request::Produce(it) => it.topic_data.len(),
        Request::Fetch(it) => it.topics.len(),
        Request::ListOffsets(it) => it.topics.len(),
        Request::Metadata(it) => it.topics.as_ref()?.len(),
        Request::OffsetCommit(it) => it.topics.len(),
        Request::TxnOffsetCommit(it) => it.topics.len(),
        Request::CreateTopics(it) => it.topics.len(),
        Request::CreatePartitions(it) => it.topics.len(),
        Request::DeleteTopics(it) => it.topics.len() + it.topic_names.len(),
        Request::DeleteRecords(it) => it.topics.len(),
        Request::OffsetDelete(it) => it.topics.len(),
        Request::OffsetForLeaderEpoch(it) => it.topics.len(),
        _ => return None,
    })
}

/// Returns the trace context of the first record of a batch.
fn context(partition: &produce::Partition) -> Option<TraceContext> {
    let bytes = partition.records.as_ref()?.pieces().next()?;
    let (batch, _) = Batch::split(bytes).ok()?;
    if batch.header().attributes.compression() != Some(Compression::None) {
        return None;
    }
    let record = Records::new(batch.header(), batch.payload()).next()?.ok()?;
    let mut headers = record.headers();
    let (_, value) = headers.find(|(name, _)| *name == TRACEPARENT)?;
    TraceContext::parse(value?)
}
