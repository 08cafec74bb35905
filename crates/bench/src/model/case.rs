//! A benchmark case: target, mode and parameters.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Area, Metric, Mode};
use crate::format::thousands;

/// A row of a matrix. Two runs are repeats of each other if their cases are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// Name of the system measured: `telpher`, `nats`.
    pub target: String,
    /// Measured part of the system.
    pub area: Area,
    /// Message exchange pattern.
    pub mode: Mode,
    /// Number of clients that send concurrently.
    pub clients: u32,
    /// Payload of a message in bytes.
    pub size: u64,
    /// Offered messages per second of all clients together; 0 means as fast as possible.
    pub rate: u64,
    /// Messages each client has in flight, in modes that bound them.
    pub in_flight: Option<u32>,
    /// Further parameters that distinguish cases: `transport=unix`, `acks=all`.
    pub parameters: BTreeMap<String, String>,
}

impl Case {
    /// Name of the parameter that holds the number of subscribers of a publisher.
    pub const SUBSCRIBERS: &str = "subscribers";

    /// Makes a case with one client, an empty payload and no rate.
    #[must_use]
    pub fn new(target: impl Into<String>, area: Area, mode: Mode) -> Self {
        Self {
            target: target.into(),
            area,
            mode,
            clients: 1,
            size: 0,
            rate: 0,
            in_flight: None,
            parameters: BTreeMap::new(),
        }
    }

    /// Sets the number of clients.
    #[must_use]
    pub fn clients(self, clients: u32) -> Self {
        Self { clients, ..self }
    }

    /// Sets the payload size in bytes.
    #[must_use]
    pub fn size(self, size: u64) -> Self {
        Self { size, ..self }
    }

    /// Sets the total rate in messages per second.
    #[must_use]
    pub fn rate(self, rate: u64) -> Self {
        Self { rate, ..self }
    }

    /// Sets the messages in flight per client.
    #[must_use]
    pub fn in_flight(self, in_flight: u32) -> Self {
        Self {
            in_flight: Some(in_flight),
            ..self
        }
    }

    /// Sets a further parameter.
    #[must_use]
    pub fn parameter(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.parameters.insert(key.to_owned(), value.to_string());
        self
    }

    /// Returns a numeric parameter; 1 if it is absent or no number.
    #[must_use]
    pub fn number(&self, key: &str) -> u64 {
        let text = self.parameters.get(key);
        text.and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    /// Returns the number of subscribers that get each message; 1 if it is not a parameter.
    #[must_use]
    pub fn subscribers(&self) -> u32 {
        u32::try_from(self.number(Self::SUBSCRIBERS)).unwrap_or(1)
    }

    /// Returns true if messages leave on a schedule.
    #[must_use]
    pub fn paced(&self) -> bool {
        self.rate > 0
    }

    /// Returns the main metrics of the case. The first of them decides the flag `unstable`.
    #[must_use]
    pub fn headline(&self) -> &'static [Metric] {
        match (self.mode.answered, self.paced()) {
            (true, true) => &[Metric::LatencyMean, Metric::LatencyP99],
            (true, false) => &[
                Metric::ObservedRate,
                Metric::LatencyMean,
                Metric::LatencyP99,
            ],
            (false, _) => &[Metric::ObservedRate],
        }
    }

    /// Returns the metrics to compare with a rival target: the rate; the latency if one message at
    /// a time is in flight (with more, the window determines the latency); and the node's CPU per
    /// message.
    #[must_use]
    pub fn contest(&self) -> Vec<Metric> {
        let mut metrics = match (self.mode.answered, self.paced()) {
            (true, true) => vec![Metric::LatencyMean, Metric::LatencyP99],
            (true, false) if self.in_flight == Some(1) => {
                vec![Metric::ObservedRate, Metric::LatencyP50, Metric::LatencyP99]
            }
            (_, _) => vec![Metric::ObservedRate],
        };
        metrics.push(Metric::NodeCpuPerMessage);
        metrics
    }

    /// Returns true if the two cases run the same workload on different targets.
    #[must_use]
    pub fn rivals(&self, other: &Self) -> bool {
        let alike = |case: &Self| Self {
            target: String::new(),
            mode: Mode {
                name: case.mode.job().to_owned().into(),
                ..case.mode.clone()
            },
            ..case.clone()
        };
        self.target != other.target && alike(self) == alike(other)
    }

    /// Returns the name of the workload: all parameters except the target.
    #[must_use]
    pub fn workload(&self) -> String {
        let mut words = format!(
            "{}-{}-c{}-s{}-r{}",
            self.area.name(),
            self.mode.name,
            self.clients,
            self.size,
            self.rate
        );
        if let Some(in_flight) = self.in_flight {
            words += &format!("-f{in_flight}");
        }
        for (key, value) in &self.parameters {
            words += &format!("-{key}={value}");
        }
        words
    }

    /// Returns the key of the case's series: unpaced answered cases of one target that differ only
    /// in mode and depth, whose rates may be divided by each other. `None` for other cases.
    #[must_use]
    pub fn series(&self) -> Option<String> {
        (self.mode.answered && !self.paced()).then(|| {
            format!(
                "{}-{}-c{}-s{}-{:?}",
                self.target,
                self.area.name(),
                self.clients,
                self.size,
                self.parameters
            )
        })
    }

    /// Returns a unique name that is valid in file names.
    #[must_use]
    pub fn key(&self) -> String {
        let fit = |c: char| {
            if c.is_ascii_alphanumeric() || "-._=".contains(c) {
                c
            } else {
                '_'
            }
        };
        format!("{}-{}", self.target, self.workload())
            .chars()
            .map(fit)
            .collect()
    }

    /// Returns the parameters that distinguish cases as (name, words), in a fixed order.
    #[must_use]
    pub fn parts(&self) -> Vec<(&str, String)> {
        let clients = match self.clients {
            1 => "1 client".to_owned(),
            clients => format!("{clients} clients"),
        };
        let pace = match self.rate {
            0 => "unpaced".to_owned(),
            rate => format!("{}/s", thousands(rate as f64, 0)),
        };
        let mut parts = vec![("mode", self.mode.name.to_string()), ("clients", clients)];
        parts.extend(
            self.in_flight
                .map(|depth| ("in flight", format!("{depth} in flight"))),
        );
        parts.push(("size", format!("{} B", thousands(self.size as f64, 0))));
        parts.push(("rate", pace));
        parts.extend(
            self.parameters
                .iter()
                .map(|(key, value)| (&**key, format!("{key} {value}"))),
        );
        parts
    }

    /// Formats the parameters: `1 client · 16 B · 100/s`.
    #[must_use]
    pub fn description(&self) -> String {
        self.description_without(&["mode"])
    }

    /// Formats all parameters except those in `names`.
    #[must_use]
    pub fn description_without(&self, names: &[&str]) -> String {
        let parts = self
            .parts()
            .into_iter()
            .filter(|(name, _)| !names.contains(name));
        parts
            .map(|(_, words)| words)
            .collect::<Vec<_>>()
            .join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_contains_everything_that_distinguishes_cases() {
        let case = Case::new("telpher", Area::Rpc, Mode::CONCURRENT)
            .clients(2)
            .size(128)
            .in_flight(10)
            .parameter("transport", "unix:/x");
        assert_eq!(
            case.key(),
            "telpher-rpc-concurrent-c2-s128-r0-f10-transport=unix__x"
        );
        assert_eq!(
            case.description(),
            "2 clients · 10 in flight · 128 B · unpaced · transport unix:/x"
        );
        assert_ne!(case.key(), case.clone().in_flight(11).key());
        assert_eq!(
            case.workload(),
            Case {
                target: "nats".into(),
                ..case.clone()
            }
            .workload()
        );
    }

    #[test]
    fn a_rival_runs_the_same_job_in_any_mode() {
        let case = |target: &str, mode| Case::new(target, Area::Rpc, mode).in_flight(1);
        let ours = case("telpher", Mode::BLOCKING);
        assert!(ours.rivals(&case("floor", Mode::SERIAL)));
        assert!(!ours.rivals(&case("telpher", Mode::SERIAL)));
        assert!(!ours.rivals(&case("floor", Mode::CALLBACK)));
        assert!(!ours.rivals(&case("floor", Mode::SERIAL).size(1)));
    }
}
