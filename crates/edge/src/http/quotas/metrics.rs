//! What a node counts of quotas, as OpenMetrics text. A limit that does not stand has no label.

use std::fmt::Error;

use node::Quotas;
use node::quotas::{LimitCounts, TakeCounts};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Everything that is known of quotas.
pub(in crate::http) fn encode(
    quotas: Quotas<'_>,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let counts = quotas.take_counts();
    let kind = ConstCounter::new(0u64).metric_type();
    let help = "Takes, by what became of them";
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
    let help = "Takes that were decided without the store that the buckets lie in";
    let degraded = ConstCounter::new(counts.degraded);
    degraded.encode(encoder.encode_descriptor("quota_degraded", help, None, kind)?)?;
    let help = "Steps of the wall clock by a second or more that budgets followed";
    let clock_steps = ConstCounter::new(counts.clock_steps);
    clock_steps.encode(encoder.encode_descriptor("quota_clock_steps", help, None, kind)?)?;
    encode_store(quotas, encoder)?;
    let buckets = quotas.bucket_counts();
    for (name, help, count) in [
        (
            "quota_buckets_evicted",
            "Buckets that were full and made room for others",
            buckets.evicted,
        ),
        (
            "quota_buckets_refused",
            "Times there was no room for a bucket, and what subjects share was taken from",
            buckets.refused,
        ),
    ] {
        let count = ConstCounter::new(count);
        count.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
    }
    for (name, help, value) in [
        ("quota_buckets", "Buckets in memory", buckets.buckets),
        (
            "quota_holds",
            "Holds that have not ended",
            quotas.hold_count(),
        ),
        ("quota_waiting", "Takes that wait", quotas.waiting_count()),
    ] {
        let value = ConstGauge::new(value as i64);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    Ok(())
}

/// What each limit did. There are at most as many labels as limits may stand.
fn encode_limits(counts: &TakeCounts, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    type Of = fn(&LimitCounts) -> u64;
    let families: [(&str, &str, Of); 2] = [
        (
            "quota_admitted",
            "Takes that were admitted, by each limit that they were taken from",
            |limit| limit.admitted,
        ),
        (
            "quota_denied",
            "Takes that were denied, by the limit that denied them",
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

/// What was done with the store that cells lie in, if there is one.
fn encode_store(quotas: Quotas<'_>, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let Some(view) = quotas.elsewhere() else {
        return Ok(());
    };
    for (name, help, count) in [
        (
            "quota_store_leased",
            "Takes that were decided by what this node has leased",
            view.leased,
        ),
        (
            "quota_store_denied",
            "Takes that were denied by what the store had said a moment before",
            view.denied,
        ),
        (
            "quota_store_asked",
            "Takes that the store was asked about",
            view.asked,
        ),
        (
            "quota_store_leases",
            "Leases that the store was asked for and answered",
            view.store.leases,
        ),
        (
            "quota_store_errors",
            "Attempts to ask the store that failed",
            view.store.errors,
        ),
        (
            "quota_store_forgotten",
            "Debits and returns that the store is not told of any more",
            view.forgotten,
        ),
    ] {
        let count = ConstCounter::new(count);
        count.encode(encoder.encode_descriptor(name, help, None, count.metric_type())?)?;
    }
    for (name, help, value) in [
        (
            "quota_store_connected",
            "Whether the store answered last time",
            i64::from(view.store.is_connected),
        ),
        (
            "quota_store_owed",
            "Cells of which the store is still to be told something",
            i64::try_from(view.owed).unwrap_or(i64::MAX),
        ),
    ] {
        let value = ConstGauge::new(value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    Ok(())
}
