//! Arguments of `telpher bridge slim`.

use std::path::PathBuf;
use std::time::Duration;

use console::output::Format;

use super::tls::Tls;
use crate::commands::target::Target;
use crate::settings::parse_duration;

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
    pub(super) agent: String,

    /// SLIM application that answers the requests of agents to NAME
    #[arg(long, value_name = "ORG/NAMESPACE/APP")]
    pub(super) to: Option<String>,

    /// Name of the bridge in SLIM [default: NAME]
    #[arg(long = "as", value_name = "ORG/NAMESPACE/APP")]
    pub(super) slim_name: Option<String>,

    /// File with the secret that the SLIM applications share
    #[arg(long, value_name = "FILE")]
    pub(super) secret_file: PathBuf,

    /// Address of a SLIM node, or of a Telpher node's SLIM listener: http://, https:// or unix://
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:46357")]
    pub(super) slim: String,

    /// Bearer token, if the SLIM node requires one [env: TELPHER_SLIM_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub(super) slim_token: Option<String>,

    #[command(flatten)]
    pub(super) slim_tls: Tls,

    /// Time limit of a request; with --to an earlier deadline of the caller applies
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(super) deadline: Duration,

    /// Send the messages of applications to the agent one way, without replies
    #[arg(long, conflicts_with = "to")]
    pub(super) one_way: bool,

    /// Require an acknowledgement of each message by the application, and repeat it until then
    #[arg(long, requires = "to")]
    pub(super) reliable: bool,

    /// Maximum number of open SLIM sessions
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    pub(super) sessions_max: u32,

    /// Maximum number of open requests, including waiting ones; further ones are answered `busy`
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    pub(super) requests_max: u32,

    #[command(flatten)]
    pub(super) format: Format,

    #[command(flatten)]
    pub(super) target: Target,
}
