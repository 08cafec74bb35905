//! Structured logging to the standard error.

use std::fmt::{self as text, Debug, Write};
use std::io::{IsTerminal, stderr};

use config::log::{Format, Options};
use tracing::Level;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use console::{Exit, Failure};

/// The library that runs the consensus of a cluster.
const CONSENSUS: &str = "openraft";

/// Starts logging for the whole process.
pub(super) fn start(options: &Options, no_color: bool) -> Result<(), Failure> {
    let levels: Targets = options
        .level
        .as_str()
        .parse()
        .map_err(|error| Failure::new(Exit::Usage, format!("`log.level`: {error}")))?;
    // It warns of each attempt to reach a member that does not answer, hundreds of times per second. A
    // level for it in the option takes precedence.
    let levels = match options.level.as_str().contains(CONSENSUS) {
        true => levels,
        false => levels.with_target(CONSENSUS, Level::ERROR),
    };
    let lines = match options.format {
        Format::Text => {
            let colours = !no_color && stderr().is_terminal();
            let fields = debug_fn(write_field).delimited(" ");
            let lines = fmt::layer().with_writer(stderr).with_ansi(colours);
            lines.fmt_fields(fields).boxed()
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
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot start logging: {error}")))
}

/// Writes a field of a text line. Control characters are escaped, so that data of clients can
/// neither begin a new line nor control a terminal.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> text::Result {
    if field.name() != "message" {
        write!(out, "{}=", field.name())?;
    }
    write_escaped(out, &format!("{value:?}"))
}

fn write_escaped(out: &mut impl Write, value: &str) -> text::Result {
    value.chars().try_for_each(|char| match char.is_control() {
        true => write!(out, "{}", char.escape_default()),
        false => out.write_char(char),
    })
}
