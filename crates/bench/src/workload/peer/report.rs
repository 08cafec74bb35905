//! Reports that the programs of the contract print.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::measurement::{Measurement, ReportedLatency, Sink};
use crate::process::{Role, RoleUsage};
use meter::clock::cpu_step_ns;

/// Report line of a load. `latency` is empty for messages without an answer.
#[derive(Debug, Clone, Deserialize)]
pub struct LoadReport {
    pub(super) completed: u64,
    pub(super) errors: u64,
    pub(super) window_ns: u64,
    pub(super) cpu_ns: u64,
    latency: ReportedLatency,
    pub(super) notes: String,
}

/// Report line of a publisher's subscribers. It has the length of the arrival window, but not its
/// start.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SubscribeReport {
    received: u64,
    window_ns: u64,
    cpu_ns: u64,
}

impl LoadReport {
    /// Converts the report to a measurement.
    #[must_use]
    pub fn measurement(&self) -> Measurement {
        let mut errors = BTreeMap::new();
        if self.errors > 0 {
            errors.insert("failed".to_owned(), self.errors);
        }
        Measurement {
            sent: self.completed + self.errors,
            completed: self.completed,
            window_ns: self.window_ns,
            errors,
            reported: (self.latency.count > 0).then_some(self.latency),
            ..Measurement::default()
        }
    }

    /// Returns the load's usage, all of it within the window.
    #[must_use]
    pub fn usage(&self) -> RoleUsage {
        reported_usage(Role::Sender, self.cpu_ns, self.window_ns)
    }
}

impl SubscribeReport {
    /// Returns the received messages.
    pub(super) fn sink(&self) -> Sink {
        Sink {
            received: self.received,
            arrivals: (self.received > 1).then_some(crate::measurement::Arrivals {
                first_ns: 0,
                last_ns: self.window_ns,
            }),
            ..Sink::default()
        }
    }

    /// Returns the subscribers' usage, for messages that were sent within this window.
    pub(super) fn usage(&self, window_ns: u64) -> RoleUsage {
        reported_usage(Role::Responder, self.cpu_ns, window_ns)
    }
}

/// Usage of a process as reported by itself, without its memory.
fn reported_usage(role: Role, cpu_ns: u64, wall_ns: u64) -> RoleUsage {
    RoleUsage {
        role,
        name: role.name().to_owned(),
        cpu_ns: Some(cpu_ns),
        wall_ns,
        cpu_step_ns: cpu_step_ns(),
        rss_bytes: None,
        rss_peak_bytes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Metric, Mode};

    const ECHO: &str = r#"{"program":"echo-floor","mode":"concurrent","in_flight":10,"size":128,
        "connections":1,"completed":187107,"errors":0,"window_ns":1000050217,"cpu_ns":416096000,
        "latency":{"count":187107,"mean_ns":53411.2,"min_ns":17821,"p50_ns":54527,"p90_ns":61183,
        "p99_ns":73471,"p999_ns":98303,"max_ns":181220},"received":0,"notes":"one thread"}"#;

    #[test]
    fn peer_load_line_becomes_a_consistent_measurement() {
        let report: LoadReport = serde_json::from_str(ECHO).unwrap();
        let measured = report.measurement();
        assert_eq!(measured.check(), Ok(()));
        let metrics = measured.metrics(&Mode::CONCURRENT);
        assert_eq!(metrics.get(Metric::LatencyP50), Some(0.054527));
        let rate = metrics.get(Metric::ObservedRate).unwrap();
        assert!((rate - 187_107.0 / 1.000_050_217).abs() < 1e-6, "{rate}");
        assert_eq!(report.usage().cpu_ns, Some(416_096_000));
    }

    #[test]
    fn published_messages_have_no_latency_and_are_counted_by_subscribers() {
        let zeros = r#""latency":{"count":0,"mean_ns":0,"min_ns":0,"p50_ns":0,"p90_ns":0,
            "p99_ns":0,"p999_ns":0,"max_ns":0}"#;
        let (start, end) = (
            ECHO.find("\"latency\"").unwrap(),
            ECHO.find(",\"received\"").unwrap(),
        );
        let line = format!("{}{zeros}{}", &ECHO[..start], &ECHO[end..]);
        let load: LoadReport = serde_json::from_str(&line).unwrap();
        let line =
            r#"{"received":1000,"each":[500,500],"window_ns":500000000,"cpu_ns":1,"rate":1}"#;
        let subscribed: SubscribeReport = serde_json::from_str(line).unwrap();
        let measured = Measurement {
            sink: Some(subscribed.sink()),
            ..load.measurement()
        };
        assert_eq!(measured.check(), Ok(()));
        let metrics = measured.metrics(&Mode::PUBLISH);
        assert_eq!(metrics.get(Metric::ObservedRate), Some(2_000.0));
        assert_eq!(metrics.get(Metric::LatencyMean), None);
    }
}
