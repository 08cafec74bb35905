//! Archive metrics as OpenMetrics text.

use std::fmt::Error;

use conversation_service::archive::ArchiveView;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Appends all archive metrics.
pub(super) fn encode(view: &ArchiveView, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let counters: [(&str, &str, u64); 7] = [
        (
            "archive_batches",
            "Batches written to the archive",
            view.batches,
        ),
        (
            "archive_messages",
            "Messages written to the archive, except those that it had already",
            view.messages,
        ),
        (
            "archive_refused",
            "Rows that the archive refused and that were stored apart there",
            view.refused,
        ),
        (
            "archive_erased",
            "Conversations erased in the archive",
            view.erased,
        ),
        (
            "archive_trimmed",
            "Messages trimmed from the disk because the archive has them",
            view.trimmed,
        ),
        (
            "archive_read_back",
            "Messages read back from the archive",
            view.read_back,
        ),
        (
            "archive_errors",
            "Attempts to write to the archive that failed",
            view.errors,
        ),
    ];
    for (name, help, value) in counters {
        let value = ConstCounter::new(value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    let gauges: [(&str, &str, i64); 2] = [
        (
            "archive_connected",
            "1 if the last request to the archive was answered",
            view.is_connected.into(),
        ),
        (
            "archive_lag_events",
            "Conversation events not yet in the archive",
            view.lag_events as i64,
        ),
    ];
    for (name, help, value) in gauges {
        let value = ConstGauge::new(value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    let age = ConstGauge::new(view.lag_ms as f64 / 1e3);
    let (name, help) = (
        "archive_lag_seconds",
        "Age of the oldest event not yet in the archive",
    );
    age.encode(encoder.encode_descriptor(name, help, None, age.metric_type())?)?;
    encode_error(view, encoder)
}

/// Appends the last error as a label; no series without an error.
fn encode_error(view: &ArchiveView, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let Some(error) = &view.error else {
        return Ok(());
    };
    let value = ConstGauge::new(1i64);
    let (name, help) = (
        "archive_error",
        "Error of the last attempt to write, in the label `reason`",
    );
    let mut family = encoder.encode_descriptor(name, help, None, value.metric_type())?;
    value.encode(family.encode_family(&[("reason", error.as_str())])?)
}
