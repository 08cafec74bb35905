//! Options of traces.

use std::path::PathBuf;

use super::Value;

options! {
    /// Spans of requests, exported by OTLP to an OpenTelemetry collector.
    telemetry, "Telemetry";

    /// Address of the collector, which takes OTLP over HTTP: `http://127.0.0.1:4318`. `/v1/traces` is
    /// appended. Without it there are no spans; trace contexts of clients are passed on in any case.
    "telemetry.otlp_endpoint" => otlp_endpoint: Option<String> = None;

    /// Share of the traces that begin at the node and are recorded, from 0 to 1. A request with a
    /// `traceparent` is recorded if that says so.
    "telemetry.sampling_ratio" => sampling_ratio: Ratio = Ratio::ALL;

    /// Name of the service in spans.
    "telemetry.service_name" => service_name: String = "telpher".to_owned();

    /// Maximum number of spans that wait for the collector; above it spans are dropped and counted.
    "telemetry.queue_max" => queue_max: u32 = 8_192, from "1" to "1000000";

    /// PEM file with the certificates of the authorities to trust for a collector over https.
    "telemetry.authorities" => authorities: PathBuf = PathBuf::from("/etc/ssl/certs/ca-certificates.crt");
}

/// A share, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

impl Ratio {
    const ALL: Self = Self(1_000_000);

    /// Returns the share in millionths.
    pub fn ppm(self) -> u32 {
        self.0
    }
}

impl Value for Ratio {
    const FORM: &'static str = "RATIO";
    const BARE: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Self((ratio * 1e6).round() as u32)),
            _ => Err(format!("`{text}` is not a number from 0 to 1")),
        }
    }

    fn print(&self) -> String {
        (f64::from(self.0) / 1e6).to_string()
    }
}
