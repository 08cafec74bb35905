//! Quota metrics as OpenMetrics text. Limits that do not exist any more have no series.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use quota_service::Quotas;
use quota_service::{LimitCounts, TakeCounts};

/// Appends all quota metrics.
pub fn encode(quotas: Quotas<'_>, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let counts = quotas.take_counts();
    let kind = ConstCounter::new(0u64).metric_type();
    let help = "Takes by outcome";
    let mut family = encoder.encode_descriptor("quota_takes", help, None, kind)?;
    for (outcome, count) in [
        ("admitted", counts.admitted),
        ("denied", counts.denied),
        ("halted", counts.halted),
        ("refused", counts.refused),
        ("unavailable", counts.unavailable),
    ] {
        let labels = [("outcome", outcome)];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    encode_limits(&counts, encoder)?;
    let help = "Takes decided without the shared store because it did not answer";
    let degraded = ConstCounter::new(counts.degraded);
    degraded.encode(encoder.encode_descriptor("quota_degraded", help, None, kind)?)?;
    let help = "Steps of the wall clock by one second or more, which budgets follow";
    let clock_steps = ConstCounter::new(counts.clock_steps);
    clock_steps.encode(encoder.encode_descriptor("quota_clock_steps", help, None, kind)?)?;
    encode_store(quotas, encoder)?;
    let buckets = quotas.bucket_counts();
    for (name, help, count) in [
        (
            "quota_buckets_evicted",
            "Full buckets evicted to make room for others",
            buckets.evicted,
        ),
        (
            "quota_buckets_refused",
            "Takes from a shared bucket because there was no room for the subject's own",
            buckets.refused,
        ),
    ] {
        let count = ConstCounter::new(count);
        count.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
    }
    for (name, help, value) in [
        ("quota_buckets", "Buckets in memory", buckets.buckets),
        ("quota_holds", "Open holds", quotas.hold_count()),
        (
            "quota_waiting",
            "Takes that wait for credit",
            quotas.waiting_count(),
        ),
    ] {
        let value = ConstGauge::new(value as i64);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    Ok(())
}

/// Appends the counts per limit. There are at most as many series as limits.
fn encode_limits(counts: &TakeCounts, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    type Of = fn(&LimitCounts) -> u64;
    let families: [(&str, &str, Of); 2] = [
        ("quota_admitted", "Admitted takes, by limit", |limit| {
            limit.admitted
        }),
        (
            "quota_denied",
            "Denied takes, by the limit that denied them",
            |limit| limit.denied,
        ),
    ];
    for (name, help, of) in families {
        let kind = ConstCounter::new(0u64).metric_type();
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for limit in &counts.limits {
            let labels = [("limit", limit.limit.as_ref())];
            ConstCounter::new(of(limit)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Appends the metrics of the shared store, if there is one.
fn encode_store(quotas: Quotas<'_>, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let Some(view) = quotas.shared_store_view() else {
        return Ok(());
    };
    for (name, help, count) in [
        (
            "quota_store_leased",
            "Takes decided from credit that this node has leased",
            view.leased,
        ),
        (
            "quota_store_denied",
            "Takes denied from a recent answer of the store",
            view.denied,
        ),
        (
            "quota_store_asked",
            "Takes decided by a request to the store",
            view.asked,
        ),
        (
            "quota_store_leases",
            "Lease requests that the store answered",
            view.store.leases,
        ),
        (
            "quota_store_errors",
            "Failed requests to the store",
            view.store.errors,
        ),
        (
            "quota_store_forgotten",
            "Debits and returns dropped before they were sent to the store",
            view.dropped,
        ),
    ] {
        let count = ConstCounter::new(count);
        count.encode(encoder.encode_descriptor(name, help, None, count.metric_type())?)?;
    }
    for (name, help, value) in [
        (
            "quota_store_connected",
            "1 if the last request to the store was answered",
            i64::from(view.store.is_connected),
        ),
        (
            "quota_store_owed",
            "Cells with changes not yet sent to the store",
            i64::try_from(view.unsent).unwrap_or(i64::MAX),
        ),
    ] {
        let value = ConstGauge::new(value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    Ok(())
}
