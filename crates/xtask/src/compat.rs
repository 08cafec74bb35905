//! `cargo xtask compat`: third-party clients with their default settings, against a node.
//!
//! Each protocol is a *family* with a file of its own: [`kafka`] and [`slim`]. A family lists its
//! clients, fetches each by its own package manager (pip, npm, Go, Maven) into a directory below
//! `target/compat`, and runs the scripts in `compat/<family>`. Each family has its own node, on
//! free loopback ports. The task fails when a client fails or exceeds its time limit.
//!
//! `compat --a2a-tck DIR` runs the technology compatibility kit of A2A, which is in no package registry,
//! from a checkout.
//!
//! `--cluster` runs Kafka clients against three nodes whose leader moves: [`cluster`].
//!
//! To add a client: one entry in its family's `CLIENTS`. To add a family: a module, and one entry in [`FAMILIES`].

mod a2a;
mod client;
mod cluster;
mod kafka;
mod kafka_suites;
mod openapi;
mod slim;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::footprint::{Process, built};
use crate::step::{self, cargo};
use client::{Client, TestNode};
pub(crate) use client::{install_python, python_of};

/// Directory of the clients and of the node's data.
const WORKSPACE: &str = "target/compat";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
/// Counter of Kafka requests by API.
const KAFKA_REQUESTS: &str = "telpher_kafka_requests_total{api=\"";

/// Clients of one protocol.
struct Family {
    name: &'static str,
    clients: &'static [Client],
    /// Additional options of the node for this family.
    options: &'static [&'static str],
    /// Counter on `/metrics` whose labels are the APIs that a client called, if there is one.
    requests: Option<&'static str>,
}

const FAMILIES: [Family; 4] = [
    Family {
        name: "kafka",
        clients: &kafka::CLIENTS,
        options: &[],
        requests: Some(KAFKA_REQUESTS),
    },
    Family {
        name: "kafka-suites",
        clients: &kafka_suites::CLIENTS,
        options: &kafka_suites::OPTIONS,
        requests: Some(KAFKA_REQUESTS),
    },
    Family {
        name: "openapi",
        clients: &openapi::CLIENTS,
        options: &[],
        requests: None,
    },
    Family {
        name: "slim",
        clients: &slim::CLIENTS,
        options: &[],
        requests: None,
    },
];

/// Runs the named clients and families, or all. `--a2a-tck DIR` runs the A2A TCK from a checkout, and
/// `--cluster` Kafka clients against a cluster whose leader moves.
///
/// # Errors
/// When a name is unknown, when a client cannot be fetched, or when a client fails. After a failure
/// the other clients still run.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let cluster = args
        .split_first()
        .filter(|(first, _)| *first == "--cluster");
    let checkout = match args {
        [option, directory] if option == "--a2a-tck" => Some(Path::new(directory)),
        _ if cluster.is_some() => None,
        _ => {
            check_names(args)?;
            None
        }
    };
    let build = &mut cargo(&["build", "--package", "telpher"]);
    step::run("build the node", build, BUILD_LIMIT)?;
    let workspace = std::env::current_dir()?.join(WORKSPACE);
    fs::create_dir_all(&workspace)?;
    if let Some((_, names)) = cluster {
        return cluster::run(names, &workspace);
    }
    if let Some(checkout) = checkout {
        return a2a::run(&workspace, checkout);
    }
    let mut failed = Vec::new();
    for family in &FAMILIES {
        let is_wanted = |client: &&Client| {
            let mut names = args.iter();
            args.is_empty() || names.any(|name| name == client.name || name == family.name)
        };
        let mut clients = family.clients.iter().filter(is_wanted).peekable();
        if clients.peek().is_none() {
            continue;
        }
        let served = serve(&workspace, family.options)?;
        for client in clients {
            if let Err(error) = run_client(family, client, &workspace, &served) {
                eprintln!("{error:#}");
                failed.push(client.name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn check_names(args: &[String]) -> Result<()> {
    let names = FAMILIES.iter().flat_map(|family| {
        let clients = family.clients.iter().map(|client| client.name);
        std::iter::once(family.name).chain(clients)
    });
    let names: Vec<_> = names.collect();
    for arg in args {
        ensure!(
            names.contains(&arg.as_str()),
            "unknown client or family `{arg}`\nhint: use {}, or --a2a-tck DIR",
            names.join(", ")
        );
    }
    Ok(())
}

fn run_client(family: &Family, client: &Client, workspace: &Path, served: &TestNode) -> Result<()> {
    (client.fetch)(workspace)?;
    let before = family.requests.map(|it| served.counters(it)).transpose()?;
    let command = &mut (client.run)(workspace, served)?;
    let outcome = step::run(client.name, command, client.limit);
    if let Some((counter, before)) = family.requests.zip(before) {
        let after = served.counters(counter)?.into_iter();
        let asked = after.filter(|(label, count)| before.get(label) != Some(count));
        let asked: Vec<_> = asked.map(|(label, _)| label).collect();
        eprintln!("   {} called: {}", client.name, asked.join(", "));
    }
    outcome
}

/// Starts a node with a new data directory and these additional options.
fn serve(workspace: &Path, options: &[&str]) -> Result<TestNode> {
    let mut command = Command::new(built("debug")?);
    command.args(["serve", "--dev", "--json", "--end-with-stdin"]);
    command.args(["--native-listen", "127.0.0.1:0", "--native-socket", "none"]);
    command.args(["--http-listen", "127.0.0.1:0"]);
    command.args(["--kafka-listen", "127.0.0.1:0"]);
    command.args(["--slim-listen", "127.0.0.1:0"]);
    command.args(options);
    let (node, ready) = Process::start(command.current_dir(workspace))?;
    let address = |before: &str| {
        let (_, rest) = ready
            .split_once(before)
            .context("a listener has no address")?;
        anyhow::Ok(rest.split('"').next().unwrap_or_default().to_owned())
    };
    Ok(TestNode {
        kafka: address("\"kafka\":\"")?,
        http: address("\"http\":\"http://")?,
        slim: address("\"slim\":\"")?,
        _node: node,
    })
}
