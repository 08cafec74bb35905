//! Every figure a run can have, with its key, words, unit and direction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::process::Role;
use crate::stats::Better;

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Plain count.
    Count,
    /// Per second.
    PerSecond,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
    /// Percent; of CPU time, 100 is one core.
    Percent,
    /// Bytes.
    Bytes,
}

macro_rules! metrics {
    ($($name:ident $key:literal $label:literal $unit:ident $better:ident $doc:literal;)*) => {
        /// A figure of one run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Metric {
            $(#[doc = $doc] #[serde(rename = $key)] $name,)*
        }

        impl Metric {
            /// All metrics in the order of the reports.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the stable key in JSON and in live lines.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self { $(Self::$name => $key),* }
            }

            /// Returns the metric's label in reports.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }

            /// Returns the unit.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Self::$name => Unit::$unit),* }
            }

            /// Returns which direction is better.
            #[must_use]
            pub fn better(self) -> Better {
                match self { $(Self::$name => Better::$better),* }
            }
        }
    };
}

metrics! {
    ObservedRate "observed_mps" "throughput" PerSecond Higher
        "Messages per second, counted at the sink over its active window, or at the sender.";
    ObservedMessages "observed_messages" "observed messages" Count Higher
        "Messages counted at the sink, or at the sender.";
    SteadyRate "steady_mps" "steady throughput" PerSecond Higher
        "Throughput over n − 1 intervals: (n − 1) / (last − first).";
    SenderMessages "sender_total_messages" "sender messages" Count Higher
        "Messages that ended well at the sender.";
    SenderRate "sender_mps" "sender throughput" PerSecond Higher
        "Completed messages per second of the send window.";
    SenderSeconds "sender_seconds" "send window" Seconds Lower
        "Length of the send window.";
    SenderErrors "sender_errors" "sender errors" Count Lower
        "Failures at the sender.";
    Setup "setup_ms" "set-up" Millis Lower
        "Connecting and warming up, before the window.";
    SinkMessages "sink_received_messages" "sink messages" Count Higher
        "Messages received at the sink.";
    SinkRate "sink_mps" "sink throughput over its lifetime" PerSecond Higher
        "Received messages per second of the sink's lifetime; only for reports that divide by it.";
    SinkActiveRate "sink_active_mps" "sink throughput" PerSecond Higher
        "Received messages per second from the first to the last: n / (last − first).";
    SinkElapsed "sink_elapsed_seconds" "sink lifetime" Seconds Lower
        "How long the sink ran.";
    SinkActive "sink_active_receive_seconds" "sink active window" Seconds Lower
        "Time between the sink's first and last message.";
    SinkErrors "sink_errors" "sink errors" Count Lower
        "Failures at the sink.";
    LatencyMean "mean_latency_ms" "mean latency" Millis Lower
        "Mean service latency, from the real send.";
    LatencyP50 "p50_latency_ms" "p50 latency" Millis Lower "Median service latency.";
    LatencyP90 "p90_latency_ms" "p90 latency" Millis Lower "90th percentile.";
    LatencyP95 "p95_latency_ms" "p95 latency" Millis Lower "95th percentile.";
    LatencyP99 "p99_latency_ms" "p99 latency" Millis Lower "99th percentile.";
    LatencyP999 "p999_latency_ms" "p99.9 latency" Millis Lower "99.9th percentile.";
    LatencyMax "max_latency_ms" "max latency" Millis Lower "Largest service latency.";
    ResponseMean "mean_response_ms" "mean response" Millis Lower
        "Mean response latency, from the intended send.";
    ResponseP50 "p50_response_ms" "p50 response" Millis Lower "Median response latency.";
    ResponseP90 "p90_response_ms" "p90 response" Millis Lower "90th percentile.";
    ResponseP95 "p95_response_ms" "p95 response" Millis Lower "95th percentile.";
    ResponseP99 "p99_response_ms" "p99 response" Millis Lower "99th percentile.";
    ResponseP999 "p999_response_ms" "p99.9 response" Millis Lower "99.9th percentile.";
    ResponseMax "max_response_ms" "max response" Millis Lower "Largest response latency.";
    LagP99 "p99_lag_ms" "p99 generator lag" Millis Lower
        "Delay of a send although the generator was free to send, 99th percentile.";
    SenderCpuSeconds "sender_cpu_seconds" "sender CPU time" Seconds Lower "CPU time of the senders.";
    ResponderCpuSeconds "responder_cpu_seconds" "responder CPU time" Seconds Lower
        "CPU time of the responders.";
    NodeCpuSeconds "node_cpu_seconds" "node CPU time" Seconds Lower "CPU time of the nodes.";
    TotalCpuSeconds "total_cpu_seconds" "total CPU time" Seconds Lower "CPU time of all roles.";
    SenderCpu "sender_cpu" "sender CPU" Percent Lower "CPU use of the senders.";
    ResponderCpu "responder_cpu" "responder CPU" Percent Lower "CPU use of the responders.";
    NodeCpu "node_cpu" "node CPU" Percent Lower "CPU use of the nodes.";
    TotalCpu "total_cpu" "total CPU" Percent Lower "CPU use of all roles.";
    NodeCpuPerMessage "node_cpu_us_per_message" "node CPU per message" Micros Lower
        "CPU time of the nodes per observed message.";
    TotalCpuPerMessage "total_cpu_us_per_message" "total CPU per message" Micros Lower
        "CPU time of all roles per observed message.";
    SenderRssPeak "sender_rss_peak_bytes" "sender peak memory" Bytes Lower
        "Highest resident memory of the senders since they started.";
    ResponderRssPeak "responder_rss_peak_bytes" "responder peak memory" Bytes Lower
        "Highest resident memory of the responders since they started.";
    NodeRssPeak "node_rss_peak_bytes" "node peak memory" Bytes Lower
        "Highest resident memory of the nodes since they started.";
    SyncRate "syncs_per_second" "syncs" PerSecond Lower
        "Syncs that messages waited for, per second of the window.";
    BlockRate "blocks_per_second" "blocks" PerSecond Lower
        "Blocks of the write-ahead log per second of the window.";
    MessagesPerSync "messages_per_sync" "messages per sync" Count Higher
        "Messages that one sync made durable.";
    SyncP50 "p50_sync_ms" "p50 sync" Millis Lower "Median duration of a sync.";
    WriteAmplification "write_amplification" "write amplification" Count Lower
        "Bytes written to the device for each byte of payload.";
    HostSteal "host_steal_percent" "stolen CPU time" Percent Lower
        "Share of the machine's CPU time given to other guests.";
    HostForeign "host_foreign_percent" "foreign CPU time" Percent Lower
        "Share of the machine's CPU time used by processes outside the run.";
}

impl Metric {
    /// Finds a metric by its key, or by a short name: `p99`, `mean`, `throughput`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let alias = match name {
            "throughput" => return Some(Self::ObservedRate),
            "mean" | "p50" | "p90" | "p95" | "p99" | "p999" | "max" => format!("{name}_latency_ms"),
            "p99.9" => "p999_latency_ms".to_owned(),
            other => other.to_owned(),
        };
        Self::ALL
            .iter()
            .copied()
            .find(|metric| metric.key() == alias)
    }

    /// Returns the CPU time metric of a role, in seconds.
    #[must_use]
    pub fn cpu_seconds(role: Role) -> Self {
        match role {
            Role::Sender => Self::SenderCpuSeconds,
            Role::Responder => Self::ResponderCpuSeconds,
            Role::Node => Self::NodeCpuSeconds,
        }
    }

    /// Returns the CPU use metric of a role, in percent of one core.
    #[must_use]
    pub fn cpu_percent(role: Role) -> Self {
        match role {
            Role::Sender => Self::SenderCpu,
            Role::Responder => Self::ResponderCpu,
            Role::Node => Self::NodeCpu,
        }
    }

    /// Returns the peak memory metric of a role.
    #[must_use]
    pub fn rss_peak(role: Role) -> Self {
        match role {
            Role::Sender => Self::SenderRssPeak,
            Role::Responder => Self::ResponderRssPeak,
            Role::Node => Self::NodeRssPeak,
        }
    }
}

/// The figures of one run. A figure that was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metrics(BTreeMap<Metric, f64>);

impl Metrics {
    /// Makes an empty set of figures.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns one figure.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    /// Sets a figure. `None` and non-finite values leave it absent.
    pub fn set(&mut self, metric: Metric, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into().filter(|value: &f64| value.is_finite()) {
            self.0.insert(metric, value);
        }
    }

    /// Iterates over all figures in the order of [`Metric::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> + '_ {
        self.0.iter().map(|(metric, value)| (*metric, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_find_their_metric() {
        for metric in Metric::ALL {
            assert_eq!(Metric::named(metric.key()), Some(*metric));
            let json = serde_json::to_string(metric).unwrap();
            assert_eq!(json, format!("\"{}\"", metric.key()));
        }
        assert_eq!(Metric::named("p99"), Some(Metric::LatencyP99));
        assert_eq!(Metric::named("p99.9"), Some(Metric::LatencyP999));
        assert_eq!(Metric::named("speed"), None);
    }

    #[test]
    fn a_figure_that_is_not_a_number_is_absent() {
        let mut metrics = Metrics::new();
        metrics.set(Metric::NodeCpu, f64::NAN);
        metrics.set(Metric::TotalCpu, None);
        assert_eq!(metrics.iter().count(), 0);
    }
}
