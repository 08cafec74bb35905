//! Derivation of every figure from a measurement.

use std::collections::BTreeMap;

use super::{Arrivals, Measurement, Sink, Storage};
use crate::model::{CountedBy, Metric, Metrics, Mode};
use crate::process::{Role, RoleUsage, Usage};
use meter::histogram::Histogram;

impl Measurement {
    /// Derives every figure of this measurement in `mode`.
    #[must_use]
    pub fn metrics(&self, mode: &Mode) -> Metrics {
        let mut metrics = Metrics::new();
        self.sender(&mut metrics);
        if let Some(sink) = &self.sink {
            sink.metrics(&mut metrics);
        }
        self.observed(mode, &mut metrics);
        self.latency(&mut metrics);
        if let Some(usage) = &self.usage {
            self.usage(usage, &mut metrics);
        }
        if let Some(storage) = &self.storage {
            self.storage(storage, &mut metrics);
        }
        metrics
    }

    fn sender(&self, metrics: &mut Metrics) {
        metrics.set(Metric::SenderMessages, self.completed as f64);
        metrics.set(Metric::SenderErrors, total(&self.errors));
        metrics.set(Metric::SenderSeconds, seconds(self.window_ns));
        if self.window_ns > 0 {
            metrics.set(
                Metric::SenderRate,
                self.completed as f64 / seconds(self.window_ns),
            );
        }
        metrics.set(Metric::Setup, self.setup_ns.map(|ns| ns as f64 / 1e6));
    }

    /// Sets the throughput of the mode, and its steady rate: `n` events span `n − 1` intervals. If
    /// the mode has a counting sink and this run has none, each answer counts as an arrival.
    fn observed(&self, mode: &Mode, metrics: &mut Metrics) {
        let counted_by = match self.sink {
            None if mode.answered => CountedBy::Sender,
            _ => mode.counted_by,
        };
        let (count, arrivals, rate) = match counted_by {
            CountedBy::Sender => (
                Some(self.completed),
                self.completions,
                metrics.get(Metric::SenderRate),
            ),
            CountedBy::Sink => (
                self.sink.as_ref().map(|sink| sink.received),
                self.sink.as_ref().and_then(|sink| sink.arrivals),
                metrics.get(Metric::SinkActiveRate),
            ),
        };
        metrics.set(Metric::ObservedRate, rate);
        metrics.set(Metric::ObservedMessages, count.map(|count| count as f64));
        let steady = count.zip(arrivals).and_then(|(count, arrivals)| {
            per_second(count.saturating_sub(1) as f64, arrivals.active_s())
        });
        metrics.set(Metric::SteadyRate, steady);
    }

    fn latency(&self, metrics: &mut Metrics) {
        if let Some(service) = self.service.as_ref().and_then(Histogram::summary) {
            for (metric, ns) in [
                (Metric::LatencyMean, service.mean_ns),
                (Metric::LatencyP50, service.p50_ns as f64),
                (Metric::LatencyP90, service.p90_ns as f64),
                (Metric::LatencyP95, service.p95_ns as f64),
                (Metric::LatencyP99, service.p99_ns as f64),
                (Metric::LatencyP999, service.p999_ns as f64),
                (Metric::LatencyMax, service.max_ns as f64),
            ] {
                metrics.set(metric, ns / 1e6);
            }
        }
        if let Some(reported) = &self.reported {
            for (metric, ns) in [
                (Metric::LatencyMean, reported.mean_ns),
                (Metric::LatencyP50, Some(reported.p50_ns as f64)),
                (Metric::LatencyP90, Some(reported.p90_ns as f64)),
                (Metric::LatencyP99, Some(reported.p99_ns as f64)),
                (Metric::LatencyP999, reported.p999_ns.map(|ns| ns as f64)),
                (Metric::LatencyMax, Some(reported.max_ns as f64)),
            ] {
                metrics.set(metric, ns.map(|ns| ns / 1e6));
            }
        }
        if let Some(response) = self.response.as_ref().and_then(Histogram::summary) {
            for (metric, ns) in [
                (Metric::ResponseMean, response.mean_ns),
                (Metric::ResponseP50, response.p50_ns as f64),
                (Metric::ResponseP90, response.p90_ns as f64),
                (Metric::ResponseP95, response.p95_ns as f64),
                (Metric::ResponseP99, response.p99_ns as f64),
                (Metric::ResponseP999, response.p999_ns as f64),
                (Metric::ResponseMax, response.max_ns as f64),
            ] {
                metrics.set(metric, ns / 1e6);
            }
        }
        let lag = self.lag.as_ref().and_then(Histogram::summary);
        metrics.set(Metric::LagP99, lag.map(|lag| lag.p99_ns as f64 / 1e6));
    }

    fn usage(&self, usage: &Usage, metrics: &mut Metrics) {
        let messages = metrics
            .get(Metric::ObservedMessages)
            .filter(|count| *count > 0.0);
        let of = |role: Role| usage.roles.iter().filter(move |usage| usage.role == role);
        for role in Role::ALL {
            metrics.set(Metric::cpu_seconds(role), cpu(of(role), cpu_seconds));
            metrics.set(Metric::cpu_percent(role), cpu(of(role), cpu_percent));
            metrics.set(
                Metric::rss_peak(role),
                cpu(of(role), |one| Some(one.rss_peak_bytes? as f64)),
            );
        }
        metrics.set(
            Metric::TotalCpuSeconds,
            cpu(usage.roles.iter(), cpu_seconds),
        );
        metrics.set(Metric::TotalCpu, cpu(usage.roles.iter(), cpu_percent));
        for (per_message, cpu_seconds) in [
            (Metric::NodeCpuPerMessage, Metric::NodeCpuSeconds),
            (Metric::TotalCpuPerMessage, Metric::TotalCpuSeconds),
        ] {
            let used = metrics.get(cpu_seconds).zip(messages);
            metrics.set(
                per_message,
                used.map(|(seconds, messages)| seconds * 1e6 / messages),
            );
        }
        metrics.set(Metric::HostSteal, usage.host.map(|host| host.steal_percent));
        metrics.set(
            Metric::HostForeign,
            usage.host.map(|host| host.foreign_percent),
        );
    }
}

impl Measurement {
    fn storage(&self, storage: &Storage, metrics: &mut Metrics) {
        let window_s = seconds(self.window_ns);
        let ratio = |count: u64, of: u64| per_second(count as f64, of as f64);
        metrics.set(Metric::SyncRate, per_second(storage.syncs as f64, window_s));
        let blocks = storage.blocks.map(|blocks| blocks as f64);
        metrics.set(
            Metric::BlockRate,
            blocks.and_then(|blocks| per_second(blocks, window_s)),
        );
        metrics.set(
            Metric::MessagesPerSync,
            ratio(self.completed, storage.syncs),
        );
        let written = storage.written_bytes;
        metrics.set(
            Metric::WriteAmplification,
            written.and_then(|written| ratio(written, storage.payload_bytes)),
        );
        metrics.set(
            Metric::SyncP50,
            storage.sync_p50_ns.map(|ns| ns as f64 / 1e6),
        );
    }
}

impl Sink {
    fn metrics(&self, metrics: &mut Metrics) {
        let received = self.received as f64;
        let active_s = self.arrivals.map(Arrivals::active_s);
        let elapsed_s = self.elapsed_ns.map(seconds);
        metrics.set(Metric::SinkMessages, received);
        metrics.set(Metric::SinkErrors, total(&self.errors));
        metrics.set(Metric::SinkElapsed, elapsed_s);
        metrics.set(Metric::SinkActive, active_s);
        metrics.set(
            Metric::SinkRate,
            elapsed_s.and_then(|s| per_second(received, s)),
        );
        metrics.set(
            Metric::SinkActiveRate,
            active_s.and_then(|s| per_second(received, s)),
        );
    }
}

/// Sums a figure over the processes of a role. Absent without processes, and if one of them lacks
/// it.
fn cpu<'a>(
    processes: impl Iterator<Item = &'a RoleUsage>,
    figure: impl Fn(&RoleUsage) -> Option<f64>,
) -> Option<f64> {
    let mut sum = None;
    for process in processes {
        sum = Some(sum.unwrap_or(0.0) + figure(process)?);
    }
    sum
}

fn cpu_seconds(usage: &RoleUsage) -> Option<f64> {
    usage.cpu_ns.map(seconds)
}

fn cpu_percent(usage: &RoleUsage) -> Option<f64> {
    (usage.wall_ns > 0).then_some(100.0 * usage.cpu_ns? as f64 / usage.wall_ns as f64)
}

/// Divides; absent for a divisor of zero.
fn per_second(count: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then_some(count / seconds)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn total(errors: &BTreeMap<String, u64>) -> f64 {
    errors.values().sum::<u64>() as f64
}
