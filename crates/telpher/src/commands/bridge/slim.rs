//! `telpher bridge slim`: lets SLIM applications call an agent, or agents call a SLIM application.

mod inward;
mod line;
mod messages;
mod node;
mod outward;
mod running;
mod sessions;
mod tally;
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

Without --to, NAME is an agent. SLIM applications that know the secret open point-to-point sessions \
with the bridge. Each message that they publish is a request to the agent; its reply is published \
with the metadata of the request, which identifies it. A reply with the metadata `telpher-error` is an \
error: the entry is the error code, the payload is the message. The metadata `telpher-method` selects \
a method, and `telpher-one-way` (`true`) suppresses the reply.

With --to, agents call NAME and the SLIM application answers. Each request is published to the \
application in its own session, and the next message in the session is the reply. Sessions are reused \
for later requests. One-way messages are published without waiting for a reply.

Sessions are unencrypted (no MLS), and reliable if the side that opens them requests it. The secret has \
at least 32 bytes; a line break at the end of the file is not part of it.

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

    /// SLIM application that answers the requests of agents to NAME
    #[arg(long, value_name = "ORG/NAMESPACE/APP")]
    to: Option<String>,

    /// Name of the bridge in SLIM [default: NAME]
    #[arg(long = "as", value_name = "ORG/NAMESPACE/APP")]
    slim_name: Option<String>,

    /// File with the secret that the SLIM applications share
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,

    /// Address of a SLIM node, or of a Telpher node's SLIM listener: http://, https:// or unix://
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:46357")]
    slim: String,

    /// Bearer token, if the SLIM node requires one [env: TELPHER_SLIM_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    slim_token: Option<String>,

    #[command(flatten)]
    slim_tls: tls::Tls,

    /// Time limit of a request; with --to an earlier deadline of the caller applies
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    deadline: Duration,

    /// Send the messages of applications to the agent one way, without replies
    #[arg(long, conflicts_with = "to")]
    one_way: bool,

    /// Require an acknowledgement of each message by the application, and repeat it until then
    #[arg(long, requires = "to")]
    reliable: bool,

    /// Maximum number of open SLIM sessions
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    sessions_max: u32,

    /// Maximum number of open requests, including waiting ones; further ones are answered `busy`
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

/// The names of the bridge and of the two sides.
struct Names {
    agent: Name,
    slim_name: Name,
    to: Option<Name>,
}

/// Parses the name of a SLIM application, which has three parts.
fn application(text: &str) -> Result<Name, Failure> {
    let name = agent_name(text)?;
    match name.instance() {
        None => Ok(name),
        Some(_) => Err(Failure::new(
            Exit::Usage,
            format!("`{text}` has an instance, which SLIM assigns itself"),
        )
        .hint("write org/namespace/app")),
    }
}

/// Returns the three parts of a name.
fn parts(name: &Name) -> [&str; 3] {
    [name.org(), name.namespace(), name.agent()]
}

fn identity(args: &Args, slim_name: &Name) -> Result<Identity, Failure> {
    let path = args.secret_file.display();
    let unusable = |problem: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("the secret in {path}: {problem}")).hint(
            "--secret-file FILE has the secret of the SLIM applications, in the form that \
             `create_app_with_secret` takes",
        )
    };
    let bytes = std::fs::read(&args.secret_file).map_err(|error| unusable(&error))?;
    let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
    let mut entropy = [0; 48];
    fill(&mut entropy)?;
    Identity::new(slim_name.base(), secret, &entropy).map_err(|error| unusable(&error))
}

/// Fills `bytes` with random bytes of the system.
fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, bytes)
        .map_err(|_| Failure::new(Exit::Failed, "the system has no random bytes"))
}
