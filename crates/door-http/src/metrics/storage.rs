//! Storage metrics as OpenMetrics text.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use store::{StorageState, StorageView, SyncTimesView};

/// Appends all storage metrics.
pub(super) fn encode(view: &StorageView, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let counters: [(&str, &str, u64); 9] = [
        (
            "names_refused",
            "New names refused because their namespace has too many names",
            view.names_refused,
        ),
        ("journal_syncs", "Syncs of the write-ahead log", view.syncs),
        (
            "journal_blocks",
            "Blocks written to the write-ahead log",
            view.blocks,
        ),
        (
            "journal_records",
            "Records written to the write-ahead log",
            view.records,
        ),
        (
            "journal_bytes",
            "Bytes of blocks written to the write-ahead log",
            view.bytes,
        ),
        (
            "journal_filed_segments",
            "Segments compacted into extents",
            view.filed_segments,
        ),
        (
            "journal_filed_bytes",
            "Bytes of extents written from segments",
            view.filed_bytes,
        ),
        ("journal_merges", "Merges of extents", view.merges),
        (
            "journal_merged_bytes",
            "Bytes of extents written by merges",
            view.merged_bytes,
        ),
    ];
    for (name, help, value) in counters {
        let value = ConstCounter::new(value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    let gauges: [(&str, &str, u64); 9] = [
        (
            "journal_queued_bytes",
            "Bytes that wait for the disk",
            view.queued_bytes,
        ),
        (
            "journal_waiting_segments",
            "Sealed segments that wait for compaction",
            view.waiting_segments as u64,
        ),
        (
            "journal_unfiled_bytes",
            "Bytes not yet compacted, including the active segment",
            view.unfiled_bytes,
        ),
        ("journal_extents", "Extents", view.extents as u64),
        (
            "journal_extent_bytes",
            "Bytes of all extents, and of the records in retained segments",
            view.extent_bytes,
        ),
        (
            "journal_retained_segments",
            "Compacted segments whose records were not copied",
            view.retained_segments as u64,
        ),
        (
            "journal_dead_bytes",
            "Bytes in extents that are no longer readable",
            view.dead_bytes,
        ),
        (
            "journal_starved",
            "1 if appends wait because no segment is free",
            u64::from(view.is_starved),
        ),
        (
            "journal_spare_segments",
            "Free segments",
            view.spare_segments as u64,
        ),
    ];
    for (name, help, value) in gauges {
        let value = ConstGauge::new(value as i64);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    encode_state(view, encoder)?;
    encode_changes(view, encoder)?;
    match &view.sync_times {
        Some(times) => encode_times(times, encoder),
        None => Ok(()),
    }
}

/// Appends the state: one of the series is 1.
fn encode_state(view: &StorageView, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let state = view.state;
    let kind = ConstGauge::new(0i64).metric_type();
    let help = "State of the journal: 1 for the current one";
    let mut family = encoder.encode_descriptor("journal_state", help, None, kind)?;
    for one in StorageState::ALL {
        let labels = [("state", one.name())];
        let value = ConstGauge::new(i64::from(one == state));
        value.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Appends the reason of a state other than serving, and the number of changes to each state.
fn encode_changes(view: &StorageView, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    if let Some(reason) = &view.reason {
        let kind = ConstGauge::new(0i64).metric_type();
        let help = "Reason of the journal's state; absent while it serves";
        let mut family = encoder.encode_descriptor("journal_problem", help, None, kind)?;
        let labels = [("state", view.state.name()), ("reason", reason)];
        ConstGauge::new(1i64).encode(family.encode_family(&labels)?)?;
    }
    let kind = ConstCounter::new(0u64).metric_type();
    let help = "Changes of the journal's state, by new state";
    let mut family = encoder.encode_descriptor("journal_state_changes", help, None, kind)?;
    let changes = view.changes;
    for state in StorageState::ALL {
        let count = match state {
            StorageState::Serving => changes.serving,
            StorageState::FilingRetrying => changes.filing_retrying,
            StorageState::FilingFailed => changes.filing_failed,
            StorageState::DiskFull => changes.disk_full,
            StorageState::Failed => changes.failed,
        };
        let labels = [("state", state.name())];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_times(times: &SyncTimesView, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let bucket = |(bound, count): &(Option<u64>, u64)| {
        let bound = bound.map_or(f64::INFINITY, seconds);
        (bound, *count)
    };
    let buckets: Vec<_> = times.counts.iter().map(bucket).collect();
    let count = times.counts.iter().map(|(_, count)| count).sum();
    let help = "Duration of syncs of the write-ahead log";
    let unit = Unit::Seconds;
    let mut metric =
        encoder.encode_descriptor("journal_sync", help, Some(&unit), MetricType::Histogram)?;
    metric.encode_histogram::<NoLabelSet>(seconds(times.sum_ns), count, &buckets, None)
}
