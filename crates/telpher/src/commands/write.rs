//! `telpher write`: writes a durable message to an agent's mailbox.

use std::time::Duration;

use client::{CallError, Client, RetryPolicy, WriteReceipt};
use console::{Environment, Failure, body, output};
use model::{ErrorCode, Name, Retry};
use serde_json::{Value, json};

use super::target::{NodeArgs, agent_name, block_on, report_call_failure};
use crate::settings::parse_duration;

const EXAMPLES: &str = "\
Examples:
  telpher write acme/demo/worker 'job 7'           stored on disk, for one instance, now or later
  telpher write acme/demo/worker - < job.json      the body from the standard input
  telpher write --ttl 1h acme/demo/worker 'job 8'  expires if it is not acknowledged in an hour
  telpher write --id 00000000000000000000000000000007 acme/demo/worker 'job 7'
                                                   can be repeated: it is stored once
  telpher write --durability memory acme/demo/worker 'job 9'
                                                   not stored, for current subscribers only

`telpher mailbox peek` shows waiting messages, `telpher listen` receives them.";

/// Maximum number of attempts of a write to disk, which is idempotent by its id.
const ATTEMPTS: u32 = 5;

/// Write a message that is stored until a subscriber acknowledges it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent
    agent: String,

    /// Body, or `-` for the standard input
    body: String,

    /// Point at which the write is acknowledged
    #[arg(long, value_enum, default_value_t = Durability::Disk)]
    durability: Durability,

    /// Maximum time that the message waits; the node may have a lower limit
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,

    /// Id of the write, 32 hexadecimal digits; a repeated write with the same id is not stored
    /// again
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    id: Option<[u8; 16]>,

    /// Method to call, if the agent has several
    #[arg(long, default_value = "", hide_default_value = true)]
    method: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Durability {
    /// When the message is on disk
    Disk,
    /// When the message is queued for current subscribers; succeeds even without any
    Memory,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    let body = body::read(&args.body)?;
    // Every attempt has the same id.
    let id = args.id.unwrap_or_else(|| fastrand::u128(..).to_le_bytes());
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let outcome = match args.durability {
            Durability::Disk => to_disk(&client, &name, &body, id, &args).await,
            Durability::Memory => to_memory(&client, &name, &body).await,
        };
        let (value, human) = outcome.map_err(|error| write_failure(&args, &name, &error))?;
        output::print(args.node.format, &value, &human)
    })
}

async fn to_disk(
    client: &Client,
    name: &Name,
    body: &[u8],
    id: [u8; 16],
    args: &Args,
) -> Result<(Value, String), CallError> {
    let write = || {
        let write = client.write(name, body).method(&args.method).id(id);
        match args.ttl {
            Some(ttl) => write.ttl(ttl),
            None => write,
        }
    };
    let first = match write().await {
        Err(error) if error.code == ErrorCode::Throttled => {
            output::note(&format!("{error}; retrying when the limit has refilled"));
            None
        }
        Err(error) if error.retry() == Retry::Never => return Err(error),
        first => first.ok(),
    };
    let WriteReceipt {
        offset,
        is_duplicate,
    } = match first {
        Some(written) => written,
        None => write().retry(RetryPolicy::attempts(ATTEMPTS - 1)).await?,
    };
    let human = match is_duplicate {
        false => format!("stored at {offset}\n"),
        true => format!("already stored at {offset}\n"),
    };
    Ok((
        json!({ "offset": offset, "duplicate": is_duplicate }),
        human,
    ))
}

async fn to_memory(
    client: &Client,
    name: &Name,
    body: &[u8],
) -> Result<(Value, String), CallError> {
    let copies = client.write_to_memory(name, body).await?;
    let human = format!("accepted, queued for {copies}\n");
    Ok((json!({ "copies": copies }), human))
}

fn write_failure(args: &Args, name: &Name, error: &CallError) -> Failure {
    let failure = report_call_failure(args.node.format, name, error);
    match error.code {
        ErrorCode::Unsupported => failure.hint("use --durability memory"),
        ErrorCode::Busy => {
            failure.hint(format!("`telpher mailbox peek {name}` shows the messages"))
        }
        _ => failure,
    }
}

fn parse_id(text: &str) -> Result<[u8; 16], String> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten();
    number
        .map(u128::to_be_bytes)
        .ok_or_else(|| format!("`{text}` is not 32 hexadecimal digits"))
}
