//! `telpher request`: calls an agent and prints its reply.

use std::time::Duration;

use client::Caller;
use console::{Environment, Failure, body, output};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::target::{NodeArgs, agent_name, block_on, report_call_failure};
use crate::settings::parse_duration;

const EXAMPLES: &str = "\
Examples:
  telpher request acme/demo/echo 'hello'
  telpher request acme/demo/calculator '{\"a\":1,\"b\":2}' --method add --deadline 2s
  telpher request acme/demo/writer 'a haiku' --stream    print each reply as it arrives
  telpher request acme/demo/echo - < request > answer";

/// Call an agent and print its reply
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the agent, with or without an instance
    agent: String,

    /// Body, or `-` for the standard input
    #[arg(default_value = "", hide_default_value = true)]
    body: String,

    /// Method to call, if the agent has several
    #[arg(long, default_value = "", hide_default_value = true)]
    method: String,

    /// Time limit of the whole reply
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    deadline: Duration,

    /// Accept any number of replies; print each on a line as it arrives
    #[arg(long)]
    stream: bool,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let name = agent_name(&args.agent)?;
    let body = body::read(&args.body)?;
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let caller = client
            .caller(name.as_str())
            .map_err(|error| Failure::new(console::Exit::Usage, error))?;
        let outcome = match args.stream {
            true => stream(&args, &caller, &body).await,
            false => call(&args, &caller, &body).await,
        };
        outcome.map_err(|failed| match failed {
            RequestError::Call(error) => report_call_failure(args.node.format, &name, &error),
            RequestError::Output(failure) => failure,
        })
    })
}

/// The error of a request.
enum RequestError {
    Call(client::CallError),
    Output(Failure),
}

async fn call(args: &Args, caller: &Caller, body: &[u8]) -> Result<(), RequestError> {
    let start = Instant::now();
    let call = caller.call(&args.method, body).deadline(args.deadline);
    let reply = call.await.map_err(RequestError::Call)?;
    let elapsed_us = start.elapsed().as_micros() as u64;
    let printed = match args.node.format.json {
        false => output::print_bytes(&reply),
        true => {
            let mut value = Map::new();
            body::insert(&mut value, "reply", &reply);
            value.insert("elapsed_us".to_owned(), elapsed_us.into());
            output::print(args.node.format, &Value::Object(value), "")
        }
    };
    printed.map_err(RequestError::Output)
}

async fn stream(args: &Args, caller: &Caller, body: &[u8]) -> Result<(), RequestError> {
    let mut replies = caller.stream(&args.method, body).deadline(args.deadline);
    while let Some(item) = replies.next().await {
        let item = item.map_err(RequestError::Call)?;
        let line = match args.node.format.json {
            false => [&item[..], b"\n"].concat(),
            true => {
                let mut value = Map::new();
                body::insert(&mut value, "item", &item);
                format!("{}\n", Value::Object(value)).into_bytes()
            }
        };
        output::print_bytes(&line).map_err(RequestError::Output)?;
    }
    Ok(())
}
