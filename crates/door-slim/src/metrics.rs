//! Metrics of the SLIM listener in addition to the node's counters.

use node::Node;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;

/// Encodes the messages without a subscriber, by name. These names are bounded in number; native
/// names are not, and `telpher agents` shows them.
pub fn encode_metrics(
    node: &Node,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), std::fmt::Error> {
    let Some(names) = node.messaging().names() else {
        return Ok(());
    };
    let kind = ConstCounter::new(0u64).metric_type();
    let help = "Messages without a subscriber on the SLIM listener, by name; only the newest names";
    let mut family = encoder.encode_descriptor("slim_undeliverable", help, None, kind)?;
    for (name, count) in names.missed() {
        let labels = [("name", name.as_str())];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
