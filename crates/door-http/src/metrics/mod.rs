//! The metrics page: counters and gauges of the node and of its process.

mod archive;
mod backlog;
mod cluster;
mod derived;
mod format;
mod latency;
mod native;
mod process;
mod spans;
mod storage;

use std::sync::Arc;

use conversation_service::Conversations;
use http_api::Connections;
use model::ErrorCode;
use node::{Node, SocketsView};
use platform::{Counter, Membership};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use store::{Health, StorageView};

pub(crate) use format::Format;
pub(crate) use latency::{Latencies, Measurement, measure};
use process::Process;

/// Encodes the metrics of another listener of the node.
pub type EncodeMetrics = fn(&Node, &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error>;

/// The page of metrics.
#[derive(Clone)]
pub(crate) struct MetricsPage {
    pub(crate) node: Node,
    pub(crate) latencies: Latencies,
    /// The connections of the HTTP listeners.
    pub(crate) connections: Arc<Connections>,
    /// The metrics of other listeners.
    pub(crate) others: &'static [EncodeMetrics],
}

impl MetricsPage {
    /// Renders the current metrics. May read mailboxes from disk.
    pub(crate) fn render(&self, format: Format) -> String {
        render(Box::new(self.clone()), format)
    }
}

/// Renders the metrics of a member that has no services: those of its journal and of replication.
pub(crate) fn render_member(
    membership: Option<Arc<dyn Membership>>,
    storage: Option<StorageView>,
    format: Format,
) -> String {
    let own = MemberMetrics {
        membership,
        storage,
    };
    render(Box::new(own), format)
}

struct MemberMetrics {
    membership: Option<Arc<dyn Membership>>,
    storage: Option<StorageView>,
}

impl std::fmt::Debug for MemberMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemberMetrics")
    }
}

impl Collector for MemberMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(view) = &self.storage {
            storage::encode(view, &mut encoder)?;
        }
        if let Some(membership) = &self.membership {
            cluster::encode(&**membership, &mut encoder)?;
        }
        encode_build(&mut encoder)
    }
}

/// Renders the metrics of the process and of a collector.
fn render(own: Box<dyn Collector>, format: Format) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Process));
    registry
        .sub_registry_with_prefix("telpher")
        .register_collector(own);
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => {}
        // Writing to a String does not fail.
        Err(std::fmt::Error) => unreachable!("formatting into a string failed"),
    }
    match format {
        Format::OpenMetrics => text,
        Format::Prometheus => format::prometheus_text(&text),
    }
}

impl std::fmt::Debug for MetricsPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MetricsPage")
    }
}

impl Collector for MetricsPage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counters = self.node.counters();
        for counter in Counter::ALL {
            let value = ConstCounter::new(counters.get(*counter));
            let metric = encoder.encode_descriptor(
                counter.name(),
                counter.help().trim_end_matches('.'),
                None,
                value.metric_type(),
            )?;
            value.encode(metric)?;
        }
        let invalid = ConstCounter::new(message_json::metadata::invalid_count());
        let metric = encoder.encode_descriptor(
            "conversation_invalid_metadata",
            "Stored metadata that is not a JSON object and was rendered as null",
            None,
            invalid.metric_type(),
        )?;
        invalid.encode(metric)?;
        self.encode_failures(&mut encoder)?;
        if let Some(view) = self.node.health().map(Health::view) {
            storage::encode(&view, &mut encoder)?;
        }
        cluster::encode(self.node.membership(), &mut encoder)?;
        if let Some(view) = self.node.sockets() {
            encode_sockets(view, &mut encoder)?;
        }
        if let Some(view) = self.node.conversations().and_then(Conversations::archive) {
            archive::encode(&view, &mut encoder)?;
        }
        derived::encode(&self.node, &mut encoder)?;
        http_quotas::encode_metrics(self.node.quotas(), &mut encoder)?;
        self.connections.encode(&mut encoder)?;
        for encode in self.others {
            encode(&self.node, &mut encoder)?;
        }
        backlog::encode(&self.node, &mut encoder)?;
        self.latencies.encode(&mut encoder)?;
        native::encode(self.node.durations(), &mut encoder)?;
        if let Some(tracer) = self.node.tracer() {
            spans::encode(tracer, &mut encoder)?;
        }
        encode_build(&mut encoder)?;
        let gauges: [(&str, &str, i64); 3] = [
            (
                "connections",
                "Open connections",
                self.node.messaging().connection_count() as i64,
            ),
            (
                "subscriptions",
                "Subscriptions",
                self.node.messaging().subscription_count() as i64,
            ),
            (
                "pending_calls",
                "Calls that wait for an answer",
                self.node.messaging().pending_call_count() as i64,
            ),
        ];
        for (name, help, value) in gauges {
            let value = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
            value.encode(metric)?;
        }
        Ok(())
    }
}

impl MetricsPage {
    fn encode_failures(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counters = self.node.counters();
        let kind = ConstCounter::new(0u64).metric_type();
        let mut family =
            encoder.encode_descriptor("failures", "Failures answered, by code", None, kind)?;
        for code in ErrorCode::ALL {
            let labels = [("code", code.as_str())];
            let value = ConstCounter::new(counters.failures(code));
            value.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The build as labels of a gauge that is always 1.
fn encode_build(encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
    let help = "Versions of the software and of its native protocol; always 1";
    let value = ConstGauge::new(1i64);
    let mut family = encoder.encode_descriptor("build_info", help, None, value.metric_type())?;
    let protocol = wire::VERSION.to_string();
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("native_protocol", protocol.as_str()),
    ];
    value.encode(family.encode_family(&labels)?)
}

/// The sockets of all listeners against their common limit.
fn encode_sockets(
    view: SocketsView,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), std::fmt::Error> {
    let gauge = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let gauges = [
        ("sockets", "Open sockets of all listeners", gauge(view.open)),
        (
            "sockets_max",
            "Limit of open sockets of all listeners",
            gauge(view.limit),
        ),
    ];
    for (name, help, value) in gauges {
        let value = ConstGauge::new(value);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    let refused = ConstCounter::new(view.refused);
    let help = "Connections refused because no file descriptor was left for them";
    refused.encode(encoder.encode_descriptor(
        "sockets_refused",
        help,
        None,
        refused.metric_type(),
    )?)
}
