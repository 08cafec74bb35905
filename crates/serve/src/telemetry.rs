//! The tracer of a node and its exporter, from the configuration.

use std::sync::Arc;

use config::Config;
use console::{Exit, Failure};
use outbound::otlp::Exporter;
use platform::{Ports, Tracer, TracerOptions};

/// Spans that are exported.
pub(super) struct Telemetry {
    tracer: Arc<Tracer>,
    exporter: Exporter,
}

impl Telemetry {
    /// Creates the tracer and its exporter; `None` if no collector is configured.
    pub(super) fn new(config: &Config, ports: &Ports) -> Result<Option<Self>, Failure> {
        let options = &config.telemetry;
        let Some(endpoint) = &options.otlp_endpoint else {
            return Ok(None);
        };
        let authorities = Some(options.authorities.as_path()).filter(|path| path.exists());
        let tls = net::client_config(authorities).map_err(|error| {
            Failure::new(Exit::Failed, format!("`telemetry.authorities`: {error}"))
                .hint("set a PEM file with certificates: --telemetry-authorities PATH")
        })?;
        let exporter = Exporter::new(endpoint, &options.service_name, tls).map_err(|error| {
            let message = format!("`telemetry.otlp_endpoint`: `{endpoint}`: {error}");
            Failure::new(Exit::Usage, message)
                .hint("name a collector: --telemetry-otlp-endpoint http://127.0.0.1:4318")
        })?;
        let tracer = Tracer::new(
            ports.clone(),
            TracerOptions {
                sampled_ppm: options.sampling_ratio.ppm(),
                queue_max: options.queue_max as usize,
            },
        );
        Ok(Some(Self {
            tracer: Arc::new(tracer),
            exporter,
        }))
    }

    /// Returns the tracer, as a part of the node.
    pub(super) fn tracer(&self) -> Arc<Tracer> {
        self.tracer.clone()
    }

    /// Exports spans. Never returns.
    pub(super) fn run(self) -> impl Future<Output = ()> + Send {
        self.exporter.run(self.tracer)
    }
}
