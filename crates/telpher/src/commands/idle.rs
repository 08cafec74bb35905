//! `telpher idle`, hidden in help: holds idle connections, to measure their cost.

use client::Client;
use console::{Environment, Exit, Failure, output};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;

use super::target::{Target, block_on};

/// Hold idle connections until the standard input ends
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of connections
    connections: usize,

    #[command(flatten)]
    target: Target,
}

/// Maximum number of concurrent handshakes.
const CONCURRENCY: usize = 64;

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    // If the limit is too low, the connection that exceeds it fails with an error.
    let _ = serve::raise_descriptors(u32::try_from(args.connections).unwrap_or(u32::MAX));
    block_on(async {
        let held = connect_all(&args, environment).await?;
        output::print_text(&format!("{}\n", json!({ "connections": held.len() })))?;
        let mut byte = [0; 1];
        let read = tokio::io::stdin().read(&mut byte).await;
        read.map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("cannot read the standard input: {error}"),
            )
        })?;
        Ok(())
    })
}

async fn connect_all(args: &Args, environment: &Environment) -> Result<Vec<Client>, Failure> {
    let mut held = Vec::with_capacity(args.connections);
    let mut connecting = JoinSet::new();
    for _ in 0..args.connections {
        if connecting.len() == CONCURRENCY {
            held.extend(next(&mut connecting).await?);
        }
        let (target, environment) = (args.target.clone(), environment.clone());
        connecting.spawn(async move { target.connect(&environment).await });
    }
    while let Some(client) = next(&mut connecting).await? {
        held.push(client);
    }
    Ok(held)
}

async fn next(
    connecting: &mut JoinSet<Result<Client, Failure>>,
) -> Result<Option<Client>, Failure> {
    match connecting.join_next().await {
        None => Ok(None),
        Some(Ok(outcome)) => outcome.map(Some),
        Some(Err(error)) => Err(Failure::new(Exit::Failed, error)),
    }
}
