//! `telpher listen`: be an agent: print what arrives, or answer it.

mod answer;
mod shell;

use std::sync::Arc;
use std::time::Duration;

use client::{Client, ConnectionState, Envelope, Events, SubscribeOptions, Subscription};
use tokio::task::JoinSet;

use super::target::{Target, agent_name, block_on, call_failure};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::serve::Signals;
use crate::settings::{Environment, parse_duration};
use answer::Answering;

const EXAMPLES: &str = "\
Examples:
  telpher listen acme/demo/worker                    print what is sent to the name
  telpher listen acme/demo/echo --echo               answer each request with its own body
  telpher listen acme/demo/upper --exec 'tr a-z A-Z' answer with the output of a shell command
  telpher listen acme/demo/worker --count 1 --json   wait for one message, as JSON

The command of --exec runs for messages that want no answer too; its output is printed then. It finds \
the sender in TELPHER_SOURCE, the method in TELPHER_METHOD and our name in TELPHER_NAME. When it fails, \
the caller gets a handler_error.

SIGINT or SIGTERM ends it gracefully: what is being answered is finished. A second one ends it at once.";

/// Subscribe to a name; print what arrives, or answer it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent, with or without an instance
    agent: String,

    /// Answer each request with its own body
    #[arg(long, conflicts_with = "exec")]
    echo: bool,

    /// Answer each request with the output of this shell command; the body is its input
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,

    /// How many commands may run at the same time; further messages wait
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=4096),
        requires = "exec"
    )]
    concurrency: u32,

    /// How long a command may run; the caller's deadline may end it before
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        value_parser = parse_duration,
        requires = "exec"
    )]
    timeout: Duration,

    /// End after this many messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// Print nothing of what arrives
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let client = args.target.connect(environment).await?;
        let subscription = client
            .subscribe_with(&name, SubscribeOptions::new().with_source())
            .await
            .map_err(|error| call_failure(&name, &error))?;
        output::note(&format!("listening as {}", subscription.name()));
        let mut listener = Listener::new(args, &client, subscription);
        let outcome = tokio::select! {
            outcome = listener.listen() => outcome,
            () = signals.next() => Ok(()),
        };
        let finished = tokio::select! {
            finished = listener.finish(client) => finished,
            () = signals.next() => Ok(()),
        };
        outcome.and(finished)
    })
}

struct Listener {
    answering: Answering,
    subscription: Subscription,
    events: Events,
    watch: Watch,
    concurrency: usize,
    /// Messages until the end.
    left: u64,
    /// Answers that take time.
    under_way: JoinSet<Result<(), Failure>>,
}

impl Listener {
    fn new(args: Args, client: &Client, subscription: Subscription) -> Self {
        Self {
            concurrency: args.concurrency as usize,
            left: args.count.unwrap_or(u64::MAX),
            answering: Answering::new(Arc::new(args)),
            subscription,
            events: client.events(),
            watch: Watch::default(),
            under_way: JoinSet::new(),
        }
    }

    /// Handles what arrives until there were enough messages or there will be none any more.
    async fn listen(&mut self) -> Result<(), Failure> {
        while self.left > 0 {
            let has_room = self.under_way.len() < self.concurrency;
            tokio::select! {
                Some(ended) = self.under_way.join_next() => said(ended)?,
                Some(state) = self.events.next() => self.watch.tell(&state),
                envelope = self.subscription.next(), if has_room => match envelope {
                    Some(envelope) => self.take(envelope)?,
                    None => return Err(self.why_ended()),
                },
            }
        }
        Ok(())
    }

    fn take(&mut self, envelope: Envelope) -> Result<(), Failure> {
        if answer::is_ping(&envelope) {
            answer::pong(envelope);
            return Ok(());
        }
        self.left -= 1;
        if let Some(answer) = self.answering.begin(envelope)? {
            self.under_way.spawn(answer);
        }
        Ok(())
    }

    /// Takes nothing more, and finishes what was taken.
    async fn finish(self, client: Client) -> Result<(), Failure> {
        let Self {
            subscription,
            mut under_way,
            ..
        } = self;
        drop(subscription);
        while let Some(ended) = under_way.join_next().await {
            said(ended)?;
        }
        client.close().await;
        Ok(())
    }

    fn why_ended(&self) -> Failure {
        let code = self.subscription.ended();
        let code = code.unwrap_or(model::ErrorCode::Unavailable);
        let message = format!("the subscription ended: {code}");
        Failure::new(Exit::from(code), message).hint(format!("`telpher explain {code}` says more"))
    }
}

/// What an answer has to say of itself: that the output cannot be written, say.
fn said(ended: Result<Result<(), Failure>, tokio::task::JoinError>) -> Result<(), Failure> {
    ended.unwrap_or_else(|error| Err(Failure::new(Exit::Failed, error)))
}

/// Tells a person when the connection is lost and when it is back. States that lasted for a moment
/// only may not have been seen.
#[derive(Default)]
pub(super) struct Watch {
    is_lost: bool,
}

impl Watch {
    pub(super) fn tell(&mut self, state: &ConnectionState) {
        match state {
            ConnectionState::Reconnecting { reason, .. } => {
                if !std::mem::replace(&mut self.is_lost, true) {
                    output::note(&format!("connection lost ({reason}): trying again"));
                }
            }
            ConnectionState::Connected { address, .. } => {
                if std::mem::take(&mut self.is_lost) {
                    output::note(&format!("connected to {address} again"));
                }
            }
            ConnectionState::Connecting
            | ConnectionState::Draining { .. }
            | ConnectionState::Closed => {}
        }
    }
}
