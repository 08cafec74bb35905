//! Metrics of exported spans as OpenMetrics text.

use std::fmt::Error;

use platform::Tracer;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Appends the counts of a tracer.
pub(super) fn encode(tracer: &Tracer, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let counts = tracer.counts();
    for (name, help, value) in [
        (
            "spans_exported",
            "Spans that the collector has accepted",
            counts.exported,
        ),
        (
            "spans_dropped",
            "Spans dropped because the queue was full or the collector refused them",
            counts.dropped,
        ),
        (
            "spans_export_failures",
            "Requests to the collector that failed",
            counts.failures,
        ),
    ] {
        let value = ConstCounter::new(value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    let waiting = ConstGauge::new(counts.waiting as i64);
    let help = "Spans that wait for the collector";
    waiting.encode(encoder.encode_descriptor("spans_waiting", help, None, waiting.metric_type())?)
}
