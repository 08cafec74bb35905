//! `telpher serve`.

use std::net::IpAddr;

use node::config::Loaded;
use node::config::log::Format as LogFormat;

use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::serve::{self, Audience, CompatLimiter, EndsWith};
use crate::settings::{ConfigArgs, Environment};

const EXAMPLES: &str = "\
Examples:
  telpher serve --dev                              a temporary node that says what to try
  telpher serve --data /var/lib/telpher            a node with its data in a place of its own
  telpher serve --native-listen 127.0.0.1:0 --json any free port; say which as JSON
  TELPHER_LOG_FORMAT=json telpher serve            logs for programs

For other machines, with TLS and a token:
  telpher token add builder
  telpher serve --native-listen 0.0.0.0:7400 --tls-certificate chain.pem --tls-key key.pem

SIGTERM or SIGINT ends it gracefully, a second one at once. SIGHUP reads TLS certificates, tokens and
limits again.";

/// Run a node
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Use a temporary data directory, removed at the end, and say what to try
    #[arg(long, conflicts_with = "data")]
    dev: bool,

    /// End when the standard input ends, for nodes that a program starts
    #[arg(long, hide = true)]
    end_with_stdin: bool,

    /// Also stand in for a limiter on Express and Redis, on a port of its own
    ///
    /// Reads PORT (3000), TOKEN_BUCKET_CAPACITY (100) and TOKEN_BUCKET_RATE (10 per second) from the
    /// environment, and listens where the HTTP door does.
    #[arg(long)]
    compat_limiter: bool,

    /// A proxy whose X-Forwarded-For that door believes
    #[arg(long, value_name = "ADDRESS", requires = "compat_limiter")]
    compat_trusted_proxy: Vec<IpAddr>,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let no_color = environment.get("NO_COLOR").is_some();
    let audience = |loaded: &Loaded| {
        // A program that reads the log reads the standard output beside it.
        let is_program = args.format.json || loaded.config.log.format == LogFormat::Json;
        match (is_program, args.dev) {
            (true, _) => Audience::Program,
            (false, true) => Audience::Newcomer,
            (false, false) => Audience::Person,
        }
    };
    let ends_with = match args.end_with_stdin {
        true => EndsWith::SignalOrInput,
        false => EndsWith::Signal,
    };
    let limiter = match args.compat_limiter {
        true => Some(CompatLimiter::read(environment, args.compat_trusted_proxy)?),
        false => None,
    };
    if !args.dev {
        let read = || args.config.load(environment);
        let loaded = read()?;
        let audience = audience(&loaded);
        return serve::run(&loaded, limiter, audience, ends_with, no_color, &read);
    }
    let dir = tempfile::Builder::new()
        .prefix("telpher-dev-")
        .tempdir()
        .map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("cannot create a temporary directory: {error}"),
            )
        })?;
    let read = || args.config.load_temporary(environment, dir.path());
    let loaded = read()?;
    let audience = audience(&loaded);
    serve::run(&loaded, limiter, audience, ends_with, no_color, &read)
}
