//! `telpher listen`: acts as an agent that prints messages or answers them.

mod answer;
mod description;
mod shell;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, Envelope, Events, SubscribeOptions, Subscription};
use console::{ConnectionNotes, Environment, Exit, Failure, Signals, call_failure, output};
use tokio::task::JoinSet;

use super::target::{NodeArgs, agent_name, block_on};
use crate::settings::parse_duration;
use answer::Answering;

const EXAMPLES: &str = "\
Examples:
  telpher listen acme/demo/worker                    print the messages for the name
  telpher listen acme/demo/echo --echo               answer each request with its own body
  telpher listen acme/demo/upper --exec 'tr a-z A-Z' answer with the output of a shell command
  telpher listen acme/demo/worker --count 1 --json   wait for one message, as JSON
  telpher listen acme/demo/upper --exec 'tr a-z A-Z' --describe upper.json
                                                     tell others what the agent does

The command of --exec also runs for one-way messages; its output is printed then. It has the sender in \
TELPHER_SOURCE, the method in TELPHER_METHOD and the agent's name in TELPHER_NAME. If the command \
fails, the caller gets a handler_error.

The file of --describe is a JSON object: {\"version\": \"1.0.0\", \"description\": \"...\", \"methods\": \
[{\"name\": \"\", \"description\": \"...\", \"stream\": false, \"input\": {...}, \"output\": {...}}]}, with JSON \
Schemas as input and output. `telpher agents NAME` shows it as long as the agent is connected.

SIGINT or SIGTERM ends the agent after it has answered open requests; a second signal ends it at once.";

/// Act as an agent: print the messages for a name, or answer them
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent, with or without an instance
    agent: String,

    /// Answer each request with its own body
    #[arg(long, conflicts_with = "exec")]
    echo: bool,

    /// Answer each request with the output of this shell command, which gets the body as its input
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,

    /// Maximum number of commands that run at the same time; further messages wait
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=4096),
        requires = "exec"
    )]
    concurrency: u32,

    /// Time limit of a command; an earlier deadline of the caller applies
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        value_parser = parse_duration,
        requires = "exec"
    )]
    timeout: Duration,

    /// End after this number of messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// File with the description of the agent, as JSON
    #[arg(long, value_name = "FILE")]
    describe: Option<PathBuf>,

    /// Do not print messages
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    let mut options = SubscribeOptions::new().with_source();
    if let Some(path) = &args.describe {
        options = options.describe(description::read(path)?);
    }
    block_on(async {
        let mut signals = Signals::listen()?;
        let client = args.node.target.connect(environment).await?;
        let subscription = client
            .subscribe_with(&name, options)
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
    connection: ConnectionNotes,
    concurrency: usize,
    /// Number of messages until the end.
    left: u64,
    /// Commands that are running.
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
            connection: ConnectionNotes::default(),
            under_way: JoinSet::new(),
        }
    }

    /// Handles messages until the requested number is reached or the subscription ends.
    async fn listen(&mut self) -> Result<(), Failure> {
        while self.left > 0 {
            let has_room = self.under_way.len() < self.concurrency;
            tokio::select! {
                Some(ended) = self.under_way.join_next() => answer_outcome(ended)?,
                Some(state) = self.events.next() => self.connection.print(&state),
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

    /// Unsubscribes and waits for the open answers.
    async fn finish(self, client: Client) -> Result<(), Failure> {
        let Self {
            subscription,
            mut under_way,
            ..
        } = self;
        drop(subscription);
        while let Some(ended) = under_way.join_next().await {
            answer_outcome(ended)?;
        }
        client.close().await;
        Ok(())
    }

    fn why_ended(&self) -> Failure {
        let code = self.subscription.ended();
        let code = code.unwrap_or(model::ErrorCode::Unavailable);
        let message = format!("the subscription ended: {code}");
        Failure::new(Exit::from(code), message).hint(format!("see `telpher explain {code}`"))
    }
}

/// Returns the failure of a finished answer, for example an output that cannot be written.
fn answer_outcome(
    ended: Result<Result<(), Failure>, tokio::task::JoinError>,
) -> Result<(), Failure> {
    ended.unwrap_or_else(|error| Err(Failure::new(Exit::Failed, error)))
}
