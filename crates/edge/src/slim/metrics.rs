//! What `/metrics` says of this door beside the node's counters.

use node::Handle;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;

/// Messages that found nobody, by name. Native names are many, and shown elsewhere; these are bounded.
pub(crate) fn encode_metrics(
    node: &Handle,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), std::fmt::Error> {
    let Some(names) = node.names() else {
        return Ok(());
    };
    let kind = ConstCounter::new(0u64).metric_type();
    let help = "Messages that found no subscriber at the SLIM door, by name: the newest names";
    let mut family = encoder.encode_descriptor("slim_undeliverable", help, None, kind)?;
    for (name, count) in names.missed() {
        let labels = [("name", name.as_str())];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
