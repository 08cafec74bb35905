//! `telpher write`: one way, acknowledged by the node.

use std::time::Duration;

use client::{CallError, Client, RetryPolicy, Written};
use model::{ErrorCode, Name, Retry};
use serde_json::{Value, json};

use super::body;
use super::target::{Target, agent_name, block_on, tell_call_failure};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::settings::{Environment, parse_duration};

const EXAMPLES: &str = "\
Examples:
  telpher write acme/demo/worker 'job 7'           on disk, for one of the instances, now or later
  telpher write acme/demo/worker - < job.json      the body from the standard input
  telpher write --ttl 1h acme/demo/worker 'job 8'  given up when nobody has taken it for an hour
  telpher write --id 00000000000000000000000000000007 acme/demo/worker 'job 7'
                                                   as often as you like: it is there once
  telpher write --durability memory acme/demo/worker 'job 9'
                                                   for who is subscribed now, if anybody is

`telpher mailbox peek` shows what waits, `telpher listen` takes it.";

/// Attempts of a write to disk: twice is as good as once.
const ATTEMPTS: u32 = 5;

/// Write a message that is kept until somebody has taken it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent
    agent: String,

    /// Body, or `-` for the standard input
    body: String,

    /// When it is acknowledged
    #[arg(long, value_enum, default_value_t = Durability::Disk)]
    durability: Durability,

    /// How long it may wait for a subscriber that takes it; the node may allow less
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,

    /// What the write is called, 32 hexadecimal digits: one that was written before under the same
    /// id is not written again
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    id: Option<[u8; 16]>,

    /// Method of the agent that it is for
    #[arg(long, default_value = "", hide_default_value = true)]
    method: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Durability {
    /// When it is on disk
    Disk,
    /// When it is queued for who is subscribed now; succeeds with nobody
    Memory,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    let body = body::read(&args.body)?;
    // The same for each attempt.
    let id = args.id.unwrap_or_else(|| fastrand::u128(..).to_le_bytes());
    block_on(async {
        let client = args.target.connect(environment).await?;
        let told = match args.durability {
            Durability::Disk => to_disk(&client, &name, &body, id, &args).await,
            Durability::Memory => to_memory(&client, &name, &body).await,
        };
        let (value, human) = told.map_err(|error| write_failure(&args, &name, &error))?;
        output::print(args.format, &value, &human)
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
            output::note(&format!(
                "{error}; trying again when the limit has refilled"
            ));
            None
        }
        Err(error) if error.retry() == Retry::Never => return Err(error),
        first => first.ok(),
    };
    let Written {
        offset,
        is_duplicate,
    } = match first {
        Some(written) => written,
        None => write().retry(RetryPolicy::attempts(ATTEMPTS - 1)).await?,
    };
    let human = match is_duplicate {
        false => format!("stored at {offset}\n"),
        true => format!("was stored at {offset} before\n"),
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
    let failure = tell_call_failure(args.format, name, error);
    match error.code {
        ErrorCode::Unsupported => failure.hint("--durability memory is offered"),
        ErrorCode::Busy => failure.hint(format!("`telpher mailbox peek {name}` shows what waits")),
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
