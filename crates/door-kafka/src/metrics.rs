//! Metrics of the Kafka listener, and their encoding as OpenMetrics text.
//!
//! The node counts by API keys and error codes; the codec's tables contain their names, and bound
//! their number.

use std::fmt::Error;

use kafka::{API_KEYS, ApiKey, ErrorCode};
use node::Node;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use topic_service::{Count, Topics};
use topics::groups::State as GroupState;

/// Returns the number of a request's API, which is at the beginning of its frame.
pub(super) fn api_number(frame: &[u8]) -> usize {
    let key = frame.first_chunk().map(|bytes| i16::from_be_bytes(*bytes));
    key.and_then(|key| usize::try_from(key).ok())
        .unwrap_or(usize::MAX)
}

/// Counts a request.
pub(super) fn count_request(topics: &Topics, key: ApiKey) {
    topics.counts().add_request(key as usize);
}

/// Counts an answer, its bytes and its errors.
pub(super) fn count_answer(topics: &Topics, size: usize, errors: &[ErrorCode]) {
    let counts = topics.counts();
    counts.add(Count::Sent, size as u64);
    for error in errors {
        counts.add_error(number(*error));
    }
}

/// Returns the index of an error code: codes begin at -1.
fn number(error: ErrorCode) -> usize {
    usize::try_from(i32::from(error.code()) + 1).unwrap_or(0)
}

/// Encodes the metrics of a node's topics and of their Kafka clients; nothing without topics.
pub fn encode_metrics(node: &Node, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let Some(topics) = node.topics() else {
        return Ok(());
    };
    let topics = &topics;
    encode_requests(topics, encoder)?;
    encode_errors(topics, encoder)?;
    encode_durations(topics, encoder)?;
    let kind = ConstCounter::new(0u64).metric_type();
    for (name, help, count) in [
        (
            "kafka_received_bytes",
            "Bytes that Kafka clients have sent",
            Count::Received,
        ),
        (
            "kafka_sent_bytes",
            "Bytes of answers to Kafka clients",
            Count::Sent,
        ),
        (
            "kafka_fetch_waits",
            "Fetches that had to wait for records",
            Count::FetchWaits,
        ),
        (
            "topic_batches",
            "Record batches appended to topics",
            Count::Batches,
        ),
        (
            "topic_records",
            "Records appended to topics",
            Count::Records,
        ),
        (
            "topic_bytes",
            "Bytes of record batches appended to topics",
            Count::BatchBytes,
        ),
        (
            "topic_compaction_failures",
            "Compactions that failed; each is tried again after a pause",
            Count::CompactionFailures,
        ),
        (
            "topic_compaction_unreadable_batches",
            "Record batches that a compaction could not read and kept as they are",
            Count::UnreadableBatches,
        ),
    ] {
        let value = ConstCounter::new(topics.counts().get(count));
        value.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
    }
    let help = "Memory of compressed record batches that are decompressed for readers, in bytes";
    let value = ConstGauge::new(i64::try_from(topics.unpacked_bytes()).unwrap_or(i64::MAX));
    let descriptor =
        encoder.encode_descriptor("topic_unpacked_bytes", help, None, value.metric_type())?;
    value.encode(descriptor)?;
    encode_groups(topics, encoder)
}

fn encode_requests(topics: &Topics, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let kind = ConstCounter::new(0u64).metric_type();
    let help = "Requests of Kafka clients, by API";
    let mut family = encoder.encode_descriptor("kafka_requests", help, None, kind)?;
    for key in API_KEYS {
        let labels = [("api", key.api().name)];
        let value = ConstCounter::new(topics.counts().requests(*key as usize));
        value.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Encodes the durations of the APIs that were requested at least once.
fn encode_durations(topics: &Topics, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let help = "Time from a Kafka request to its answer, by API, including waits for records";
    let (unit, kind) = (Unit::Seconds, MetricType::Histogram);
    let name = "kafka_request_duration";
    let mut family = encoder.encode_descriptor(name, help, Some(&unit), kind)?;
    for key in API_KEYS {
        let view = topics.counts().durations(*key as usize).view();
        let count = view.count();
        if count > 0 {
            let labels = [("api", key.api().name)];
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(view.sum, count, &view.counts, None)?;
        }
    }
    Ok(())
}

/// Encodes the errors that were answered at least once.
fn encode_errors(topics: &Topics, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let kind = ConstCounter::new(0u64).metric_type();
    let help = "Errors answered to Kafka clients, by Kafka's code";
    let mut family = encoder.encode_descriptor("kafka_errors", help, None, kind)?;
    for error in ErrorCode::ALL {
        let count = topics.counts().errors(number(*error));
        if count > 0 {
            let (code, name) = (error.code().to_string(), format!("{error:?}"));
            let labels = [("code", code.as_str()), ("name", name.as_str())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_groups(topics: &Topics, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let kind = ConstGauge::new(0i64).metric_type();
    let help = "Consumer groups, by their state";
    let mut family = encoder.encode_descriptor("kafka_groups", help, None, kind)?;
    for (state, count) in topics.count_groups() {
        let state = match state {
            GroupState::Empty => "empty",
            GroupState::PreparingRebalance => "preparing_rebalance",
            GroupState::CompletingRebalance => "completing_rebalance",
            GroupState::Stable => "stable",
        };
        let value = ConstGauge::new(count as i64);
        value.encode(family.encode_family(&[("state", state)])?)?;
    }
    Ok(())
}
