//! Metrics of views and webhook agents as OpenMetrics text.

use std::fmt::Error;

use ::{views, webhooks};
use node::Node;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

/// Appends the metrics of the parts that the node has.
pub(super) fn encode(node: &Node, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    if let Some(views) = node.views() {
        encode_views(views.progress(), encoder)?;
    }
    match node.webhooks().and_then(|it| it.totals()) {
        Some(totals) => encode_webhooks(totals, encoder),
        None => Ok(()),
    }
}

fn encode_views(
    progress: views::ViewsProgress,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let gauges = [
        (
            "views_ready",
            "1 if the views of conversations are built",
            progress.is_ready.into(),
        ),
        (
            "views_lag_events",
            "Conversation events not yet in the views",
            progress.lag_events as i64,
        ),
    ];
    encode_gauges(&gauges, encoder)
}

fn encode_webhooks(
    totals: webhooks::AgentTotals,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let gauges = [
        (
            "webhook_agents",
            "Agents called for new messages",
            totals.agents as i64,
        ),
        (
            "webhook_waiting",
            "Conversations that wait for an agent, or for which a call is in flight",
            totals.waiting as i64,
        ),
        (
            "webhook_calling",
            "Calls of agents in flight",
            totals.calling.into(),
        ),
        (
            "webhook_dead",
            "Listed dead letters of agents",
            totals.dead as i64,
        ),
    ];
    encode_gauges(&gauges, encoder)
}

fn encode_gauges(
    gauges: &[(&str, &str, i64)],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    for (name, help, value) in gauges {
        let value = ConstGauge::new(*value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    Ok(())
}
