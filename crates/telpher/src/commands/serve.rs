//! `telpher serve`: runs a node.

use std::net::IpAddr;

use config::Loaded;
use config::log::Format as LogFormat;
use console::output::Format;
use console::{Environment, Exit, Failure};
use serve::{Audience, CompatLimiter, EndsWith};

use crate::settings::ConfigArgs;

const EXAMPLES: &str = "\
Examples:
  telpher serve --dev                              a temporary node; prints commands to try
  telpher serve --data /var/lib/telpher            a node with its data in another directory
  telpher serve --native-listen 127.0.0.1:0 --json listen on a free port, and print it as JSON
  TELPHER_LOG_FORMAT=json telpher serve            log as JSON

Join a cluster (see `telpher cluster`):
  telpher serve --join node-1:7402 --cluster-key cluster.key --cluster-listen node-2:7402

Accept connections from other machines, with TLS and a token:
  telpher token add builder
  telpher serve --native-listen 0.0.0.0:7400 --tls-certificate chain.pem --tls-key key.pem

SIGTERM or SIGINT ends the node gracefully, a second signal ends it at once. SIGHUP reloads TLS
certificates, tokens and limits.";

/// Run a node
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Use a temporary data directory that is removed at the end, and print commands to try
    #[arg(long, conflicts_with = "data")]
    dev: bool,

    /// Join the cluster of the member at this address, its `cluster.listen`
    ///
    /// The data directory must be empty. On a node that is a member already this has no effect, so
    /// that the same command starts it again.
    #[arg(
        long,
        value_name = "HOST:PORT",
        conflicts_with = "dev",
        requires = "cluster.key"
    )]
    join: Option<String>,

    /// End when the standard input ends, for nodes that another program starts
    #[arg(long, hide = true)]
    end_with_stdin: bool,

    /// Also listen on a port with the HTTP API of a rate limiter on Express and Redis
    ///
    /// Reads PORT (3000), TOKEN_BUCKET_CAPACITY (100) and TOKEN_BUCKET_RATE (10 per second) from
    /// the environment, and listens on the host of the HTTP listener.
    #[arg(long)]
    compat_limiter: bool,

    /// Proxy whose X-Forwarded-For header --compat-limiter trusts
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
        // A program that reads a JSON log also reads the standard output.
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
    let join = args.join.as_deref();
    if !args.dev {
        let read = || args.config.load(environment);
        let loaded = read()?;
        let audience = audience(&loaded);
        return serve::run(&loaded, join, limiter, audience, ends_with, no_color, &read);
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
    serve::run(&loaded, join, limiter, audience, ends_with, no_color, &read)
}
