//! `cargo xtask compat`: third-party clients with their default settings, against a node.
//!
//! Each protocol is a *family* with a file of its own: [`kafka`] and [`slim`]. A family lists its
//! clients, fetches each by its own package manager (pip, npm, Go, Maven) into a directory below
//! `target/compat`, and runs the scripts in `compat/<family>`. Each family has its own node, on
//! free loopback ports. The task fails when a client fails or exceeds its time limit.
//!
//! To add a client: one entry in its family's `CLIENTS`. To add a family: a module, and one entry in [`FAMILIES`].

mod kafka;
mod kafka_suites;
mod openapi;
mod slim;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::footprint::{Process, built};
use crate::step::{self, cargo};

/// Directory of the clients and of the node's data.
const WORKSPACE: &str = "target/compat";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
/// Time limit of a package manager.
const FETCH_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Time limit of a client's scripts, unless the client has its own.
const RUN_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Time limit for the node to answer `/metrics`.
const METRICS_LIMIT: Duration = Duration::from_secs(30);

/// A client: how to fetch it, and how to run it.
struct Client {
    name: &'static str,
    /// Installs the client below the directory, if that is not done.
    fetch: fn(&Path) -> Result<()>,
    /// Returns the command that runs the client against a node.
    run: fn(&Path, &TestNode) -> Result<Command>,
    limit: Duration,
}

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

/// Counter of Kafka requests by API.
const KAFKA_REQUESTS: &str = "telpher_kafka_requests_total{api=\"";

/// A running node and the addresses of its listeners.
struct TestNode {
    /// `host:port`.
    kafka: String,
    /// `host:port`.
    http: String,
    /// `http://host:port`.
    slim: String,
    _node: Process,
}

/// Runs the named clients and families, or all.
///
/// # Errors
/// When a name is unknown, when a client cannot be fetched, or when a client fails. After a failure
/// the other clients still run.
pub(crate) fn run(args: &[String]) -> Result<()> {
    check_names(args)?;
    let build = &mut cargo(&["build", "--package", "telpher"]);
    step::run("build the node", build, BUILD_LIMIT)?;
    let workspace = std::env::current_dir()?.join(WORKSPACE);
    fs::create_dir_all(&workspace)?;
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
            "unknown client or family `{arg}`\nhint: use {}",
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

impl TestNode {
    /// Returns the values of the counter whose lines on `/metrics` begin with `start`, by label.
    fn counters(&self, start: &str) -> Result<BTreeMap<String, u64>> {
        let mut stream = TcpStream::connect(&self.http)?;
        stream.set_read_timeout(Some(METRICS_LIMIT))?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let counters = text.lines().filter_map(|line| {
            let (label, count) = line.strip_prefix(start)?.split_once("\"} ")?;
            Some((label.to_owned(), count.parse().ok()?))
        });
        let counters: BTreeMap<_, _> = counters.collect();
        ensure!(!counters.is_empty(), "the node counts no requests");
        Ok(counters)
    }
}

/// Installs the packages of a `requirements.txt` into the virtual environment `venv` below the
/// workspace.
fn install_python(workspace: &Path, venv: &str, requirements: &Path) -> Result<()> {
    let venv = workspace.join(venv);
    if !venv.join("bin/pip").is_file() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&venv);
        step::run("python", &mut make, FETCH_LIMIT)?;
    }
    let mut install = Command::new(venv.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    step::run("pip install", install.arg(requirements), FETCH_LIMIT)
}

/// Returns the Python interpreter of a virtual environment.
fn python_of(workspace: &Path, venv: &str) -> PathBuf {
    workspace.join(venv).join("bin/python")
}
