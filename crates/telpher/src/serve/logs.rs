//! Structured logs to the standard error.

use std::io::{IsTerminal, stderr};

use node::config::log::{Format, Options};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::failure::{Exit, Failure};

/// Logs from here on, for the whole process.
pub(super) fn start(options: &Options, no_color: bool) -> Result<(), Failure> {
    let levels: Targets = options
        .level
        .as_str()
        .parse()
        .map_err(|error| Failure::new(Exit::Usage, format!("`log.level`: {error}")))?;
    let lines = match options.format {
        Format::Text => {
            let colours = !no_color && stderr().is_terminal();
            fmt::layer().with_writer(stderr).with_ansi(colours).boxed()
        }
        Format::Json => fmt::layer()
            .with_writer(stderr)
            .json()
            .flatten_event(true)
            .boxed(),
    };
    registry()
        .with(lines.with_filter(levels))
        .try_init()
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot start to log: {error}")))
}
