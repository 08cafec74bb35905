//! Durations of requests over the native protocol as OpenMetrics text.

use std::fmt::Error;

use platform::{Verb, VerbDurations};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Appends a histogram for each operation.
pub(super) fn encode(
    durations: &VerbDurations,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let help =
        "Time from a native request to its first answer, of one request per connection at once";
    let (unit, kind) = (Unit::Seconds, MetricType::Histogram);
    let name = "native_request_duration";
    let mut family = encoder.encode_descriptor(name, help, Some(&unit), kind)?;
    for (verb, name) in Verb::ALL {
        let view = durations.of(verb).view();
        let (labels, count) = ([("verb", name)], view.count());
        let mut metric = family.encode_family(&labels)?;
        metric.encode_histogram::<NoLabelSet>(view.sum, count, &view.counts, None)?;
    }
    Ok(())
}
