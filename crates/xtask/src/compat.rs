//! `cargo xtask compat`: clients that no one here wrote, with their defaults, against a node.
//!
//! Fetches each client by its own package manager (pip, npm, Maven) into a place below `target`, starts a
//! node on free loopback ports, and runs what stands in `compat/kafka`. It fails when one of them does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::footprint::{Process, executable};
use crate::step::{self, cargo};

const SCRIPTS: &str = "compat/kafka";
const PLACE: &str = "target/compat";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
const FETCH_LIMIT: Duration = Duration::from_secs(15 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(15 * 60);

/// A client: how it is fetched, and how it is run.
struct Client {
    name: &'static str,
    fetch: fn(&Path) -> Result<()>,
    run: fn(&Path, &str) -> Result<Command>,
}

const CLIENTS: [Client; 4] = [
    Client {
        name: "librdkafka",
        fetch: fetch_python,
        run: |place, broker| Ok(python(place, "librdkafka.py", broker)),
    },
    Client {
        name: "kafka-python",
        fetch: fetch_python,
        run: |place, broker| Ok(python(place, "pure_python.py", broker)),
    },
    Client {
        name: "kafkajs",
        fetch: fetch_node,
        run: |place, broker| Ok(node(place, broker)),
    },
    Client {
        name: "java",
        fetch: fetch_java,
        run: java,
    },
];

/// Runs the clients that are named, or all.
pub(crate) fn run(args: &[String]) -> Result<()> {
    for arg in args {
        let names = CLIENTS.map(|client| client.name);
        ensure!(
            names.contains(&arg.as_str()),
            "no client `{arg}`: there are {}",
            names.join(", ")
        );
    }
    let is_wanted = |client: &&Client| args.is_empty() || args.iter().any(|it| it == client.name);
    let build = &mut cargo(&["build", "--release", "--package", "telpher"]);
    step::run("release", build, BUILD_LIMIT)?;
    let place = std::env::current_dir()?.join(PLACE);
    fs::create_dir_all(&place)?;
    let (_node, broker) = serve(&place)?;
    let mut failed = Vec::new();
    for client in CLIENTS.iter().filter(is_wanted) {
        (client.fetch)(&place)?;
        let command = &mut (client.run)(&place, &broker)?;
        if let Err(error) = step::run(client.name, command, RUN_LIMIT) {
            eprintln!("{error:#}");
            failed.push(client.name);
        }
    }
    if !failed.is_empty() {
        bail!("not as it should be: {}", failed.join(", "));
    }
    Ok(())
}

/// A node with a directory of its own, and where its Kafka door is.
fn serve(place: &Path) -> Result<(Process, String)> {
    let mut command = Command::new(executable()?);
    command.args(["serve", "--dev", "--json", "--end-with-stdin"]);
    command.args(["--native-listen", "127.0.0.1:0", "--native-socket", "none"]);
    command.args(["--http-listen", "none", "--kafka-listen", "127.0.0.1:0"]);
    command.args(["--slim-listen", "none"]);
    let (node, ready) = Process::start(command.current_dir(place))?;
    let (_, rest) = ready
        .split_once("\"kafka\":\"")
        .context("the node names no Kafka door")?;
    let broker = rest.split('"').next().unwrap_or_default().to_owned();
    Ok((node, broker))
}

fn fetch_python(place: &Path) -> Result<()> {
    let venv = place.join("venv");
    if !venv.join("bin/pip").is_file() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&venv);
        step::run("python", &mut make, FETCH_LIMIT)?;
    }
    let mut install = Command::new(venv.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    install.arg(Path::new(SCRIPTS).join("requirements.txt"));
    step::run("pip install", &mut install, FETCH_LIMIT)
}

fn python(place: &Path, script: &str, broker: &str) -> Command {
    let mut command = Command::new(place.join("venv/bin/python"));
    command.arg(Path::new(SCRIPTS).join(script)).arg(broker);
    command
}

fn fetch_node(place: &Path) -> Result<()> {
    fs::copy(
        Path::new(SCRIPTS).join("package.json"),
        place.join("package.json"),
    )?;
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund"]);
    step::run("npm install", install.current_dir(place), FETCH_LIMIT)
}

fn node(place: &Path, broker: &str) -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", place.join("node_modules"));
    command.arg(Path::new(SCRIPTS).join("kafkajs.cjs"));
    command.arg(broker);
    command
}

fn classpath(place: &Path) -> std::path::PathBuf {
    place.join("classpath")
}

fn fetch_java(place: &Path) -> Result<()> {
    let mut fetch = Command::new("mvn");
    let pom = Path::new(SCRIPTS).join("pom.xml");
    fetch.args(["--quiet", "--batch-mode", "--file"]).arg(pom);
    let output = classpath(place);
    fetch.arg("dependency:build-classpath");
    fetch.arg(format!("-Dmdep.outputFile={}", output.display()));
    step::run("maven", &mut fetch, FETCH_LIMIT)
}

fn java(place: &Path, broker: &str) -> Result<Command> {
    let mut command = Command::new("sh");
    command.env("CLASSPATH", fs::read_to_string(classpath(place))?);
    command.arg(Path::new(SCRIPTS).join("java.sh")).arg(broker);
    Ok(command)
}
