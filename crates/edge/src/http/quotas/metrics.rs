//! What a node counts of quotas, as OpenMetrics text. A limit that does not stand has no label.

use std::fmt::Error;

use node::Quotas;
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
    let denied: u64 = counts.denied.iter().map(|(_, count)| count).sum();
    for (outcome, count) in [
        ("admitted", counts.admitted),
        ("denied", denied),
        ("halted", counts.halted),
        ("refused", counts.refused),
        ("unavailable", counts.unavailable),
    ] {
        let labels = [("outcome", outcome)];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    let help = "Takes that were denied, by the limit that denied them";
    let mut family = encoder.encode_descriptor("quota_denied", help, None, kind)?;
    for (limit, count) in &counts.denied {
        let labels = [("limit", limit.as_ref())];
        ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
    }
    let help = "Takes that were decided without the store that the buckets lie in";
    let degraded = ConstCounter::new(counts.degraded);
    degraded.encode(encoder.encode_descriptor("quota_degraded", help, None, kind)?)?;
    encode_store(quotas, encoder)?;
    for (name, help, value) in [
        ("quota_buckets", "Buckets in memory", quotas.bucket_count()),
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
