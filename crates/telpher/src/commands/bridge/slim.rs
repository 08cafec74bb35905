//! `telpher bridge slim`: an agent that SLIM applications call, or a SLIM application that agents
//! call.

mod inward;
mod line;
mod node;
mod outward;
mod running;
mod sessions;
mod tally;
mod terms;
mod tls;

use std::path::PathBuf;
use std::time::Duration;

use model::Name;
use slim::session::Identity;

use crate::commands::target::{Target, agent_name, block_on};
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::serve::Signals;
use crate::settings::{Environment, parse_duration};
use running::Running;

const EXAMPLES: &str = "\
Examples:
  telpher bridge slim acme/pay/billing --secret-file slim.secret
  telpher bridge slim acme/pay/billing --as org/ns/billing --slim http://10.0.0.7:46357 ..
  telpher bridge slim acme/pay/ledger --to org/ns/ledger --reliable --secret-file slim.secret

Without --to, NAME is an agent. SLIM applications that hold the secret open point-to-point sessions \
with it, and each message they publish is a request to the agent; its reply is published back, with \
the metadata of the message, so that replies can be told apart. A reply with the metadata \
`telpher-error` is no reply: the entry is the error's code, the payload says what happened. The \
metadata `telpher-method` names a method, and `telpher-one-way` (`true`) wants no reply.

With --to, NAME is what agents call, and this is who answers: each request is published to the SLIM \
application in a session of its own, kept for the next one, and the next message in the session \
answers it. One-way messages are published, and that is all.

The sessions are unencrypted ones (no MLS), reliable if whoever begins one says so. The file of the \
secret holds at least 32 bytes; a line break at its end is none of them.

SIGINT or SIGTERM ends it gracefully: open requests are answered, and peers are notified. A second \
one ends it at once.

With --json, each event is a line of JSON on the standard output: {\"event\":\"bridging\",..} when the \
bridge is ready, `disconnected`, `reconnected`, and `ended` with the totals.";

/// Let SLIM applications call an agent, or agents call a SLIM application
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent
    #[arg(value_name = "NAME")]
    agent: String,

    /// The SLIM application that answers what agents send to NAME
    #[arg(long, value_name = "ORG/NAMESPACE/APP")]
    to: Option<String>,

    /// Our own name in SLIM; NAME if it is not given
    #[arg(long = "as", value_name = "ORG/NAMESPACE/APP")]
    slim_name: Option<String>,

    /// The file that holds the secret which the applications share
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,

    /// Where the SLIM node is, or a node with a SLIM door: http://, https:// or unix://
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:46357")]
    slim: String,

    /// Bearer token, when the SLIM node asks for one [env: TELPHER_SLIM_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    slim_token: Option<String>,

    #[command(flatten)]
    slim_tls: tls::Tls,

    /// How long a request may take; with --to the caller's own deadline may end it before
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    deadline: Duration,

    /// Send what applications publish to the agent one way, and answer nothing
    #[arg(long, conflicts_with = "to")]
    one_way: bool,

    /// Have the application acknowledge each message, and say it again until it does
    #[arg(long, requires = "to")]
    reliable: bool,

    /// SLIM sessions at the same time
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    sessions_max: u32,

    /// Requests at the same time, waiting ones included; further ones are answered `busy`
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    requests_max: u32,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let agent = agent_name(&args.agent)?;
    let slim_name = application(args.slim_name.as_deref().unwrap_or(agent.base()))?;
    let to = args.to.as_deref().map(application).transpose()?;
    let identity = identity(&args, &slim_name)?;
    let slim_token = args.slim_token.clone();
    let variable = || {
        Some(
            environment
                .get("TELPHER_SLIM_TOKEN")?
                .to_string_lossy()
                .into_owned(),
        )
    };
    let node = node::Node::new(&args.slim, slim_token.or_else(variable), &args.slim_tls)?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let names = Names {
            agent,
            slim_name,
            to,
        };
        let client = args.target.connect(environment).await?;
        let line = line::Line::open(node).await?;
        let mut running = Running::start(args, names, identity, client, line).await?;
        tokio::select! {
            ended = running.run() => return ended,
            () = signals.next() => {}
        }
        tokio::select! {
            () = running.finish() => {}
            () = signals.next() => {}
        }
        running.print_totals()
    })
}

/// Who is who.
struct Names {
    agent: Name,
    slim_name: Name,
    to: Option<Name>,
}

/// A name as SLIM has them: three parts.
fn application(text: &str) -> Result<Name, Failure> {
    let name = agent_name(text)?;
    match name.instance() {
        None => Ok(name),
        Some(_) => Err(Failure::new(
            Exit::Usage,
            format!("`{text}` names an instance: SLIM gives each its number by itself"),
        )
        .hint("a SLIM name is org/namespace/app")),
    }
}

/// The three parts of a name.
fn parts(name: &Name) -> [&str; 3] {
    [name.org(), name.namespace(), name.agent()]
}

fn identity(args: &Args, slim_name: &Name) -> Result<Identity, Failure> {
    let path = args.secret_file.display();
    let unusable = |problem: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("the secret in {path}: {problem}")).hint(
            "--secret-file FILE holds the secret of the SLIM applications, as \
             `create_app_with_secret` takes it",
        )
    };
    let bytes = std::fs::read(&args.secret_file).map_err(|error| unusable(&error))?;
    let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
    let mut entropy = [0; 48];
    fill(&mut entropy)?;
    Identity::new(slim_name.base(), secret, &entropy).map_err(|error| unusable(&error))
}

/// Random bytes of the system's.
fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, bytes)
        .map_err(|_| Failure::new(Exit::Failed, "the system has no random bytes"))
}
