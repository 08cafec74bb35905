//! `telpher write`: one way, acknowledged by the node.

use client::{CallError, Durability};
use model::{ErrorCode, Name};
use serde_json::json;

use super::body;
use super::target::{Target, agent_name, block_on, tell_call_failure};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher write --durability memory acme/demo/worker 'job 7'
  telpher write --durability memory acme/demo/worker - < job.json";

/// Write a message that the node acknowledges
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent, with or without an instance
    agent: String,

    /// Body, or `-` for the standard input
    body: String,

    /// When it is acknowledged
    #[arg(long, value_enum, default_value_t = DurabilityArg::Disk)]
    durability: DurabilityArg,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DurabilityArg {
    /// When it is on disk (this node has no mailboxes on disk yet and refuses)
    Disk,
    /// When it is queued for who is subscribed now; succeeds with nobody
    Memory,
}

impl From<DurabilityArg> for Durability {
    fn from(durability: DurabilityArg) -> Self {
        match durability {
            DurabilityArg::Disk => Self::Disk,
            DurabilityArg::Memory => Self::Memory,
        }
    }
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    let body = body::read(&args.body)?;
    block_on(async {
        let client = args.target.connect(environment).await?;
        let copies = client
            .write(&name, body, args.durability.into())
            .await
            .map_err(|error| write_failure(args.format, &name, &error))?;
        let human = format!("accepted, queued for {copies}\n");
        output::print(args.format, &json!({ "copies": copies }), &human)
    })
}

fn write_failure(format: Format, name: &Name, error: &CallError) -> Failure {
    let failure = tell_call_failure(format, name, error);
    match error.code {
        ErrorCode::Unsupported => failure.hint("--durability memory is offered"),
        _ => failure,
    }
}
