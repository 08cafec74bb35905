//! `telpher send`: sends a one-way message to one or all subscribers.

use client::Cast;
use console::{Environment, Exit, Failure, body, output};
use serde_json::json;

use super::target::{NodeArgs, agent_name, block_on, report_call_failure};

const EXAMPLES: &str = "\
Examples:
  telpher send acme/demo/worker 'job 7'       to one of the instances, in turn
  telpher send acme/demo/worker/i-1 'job 7'   to one instance
  telpher send --all acme/demo/news 'hello'   to all subscribers
  telpher send acme/demo/lamp --method on ''  to a method
  date | telpher send acme/demo/news -        with the body from the standard input

The message is not stored: without a subscriber it is dropped, and the exit status is 3.";

/// Send a message to current subscribers, and print how many received it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent, with or without an instance
    agent: String,

    /// Body, or `-` for the standard input
    body: String,

    /// Method to call, if the agent has several
    #[arg(long, default_value = "", hide_default_value = true)]
    method: String,

    /// Send to every subscriber
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    let body = body::read(&args.body)?;
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let cast = if args.all { Cast::All } else { Cast::Any };
        let receipt = client
            .send(&name, cast, body)
            .method(&args.method)
            .reported()
            .await
            .map_err(|error| report_call_failure(args.node.format, &name, &error))?;
        let (delivered, dropped) = (receipt.delivered, receipt.dropped);
        let human = match dropped {
            0 => format!("delivered to {delivered}\n"),
            dropped => {
                format!("delivered to {delivered}, dropped for {dropped} with full queues\n")
            }
        };
        let value = json!({ "delivered": delivered, "dropped": dropped });
        output::print(args.node.format, &value, &human)?;
        match (delivered, dropped) {
            (0, 0) => {
                let message = format!("`{name}` has no subscriber");
                Err(Failure::new(Exit::NotFound, message)
                    .hint("`telpher agents` lists the subscribers")
                    .hint(format!(
                        "`telpher listen {name}` subscribes and prints messages"
                    )))
            }
            (0, _) => Err(Failure::new(
                Exit::Unavailable,
                "the queues of all subscribers are full",
            )
            .hint("a retry after a pause is safe")),
            _ => Ok(()),
        }
    })
}
