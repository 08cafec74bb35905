//! `cargo xtask compat`: clients that no one here wrote, with their defaults, against a node.
//!
//! Fetches each client by its own package manager (pip, npm, Go, Maven; kcat is the system's) into a place
//! below `target`, starts a node on free loopback ports, and runs what stands in `compat/kafka`. It says
//! which APIs each of them has asked for, and fails when one of them does, or is not done in time: what a
//! client does has a limit of its own, by which it says what it was about.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::footprint::{Process, built};
use crate::step::{self, cargo, is_installed};

const SCRIPTS: &str = "compat/kafka";
const PLACE: &str = "target/compat";

const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
const FETCH_LIMIT: Duration = Duration::from_secs(15 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(15 * 60);
/// How long the node may take to tell what it was asked for.
const METRICS_LIMIT: Duration = Duration::from_secs(30);

/// A client: how it is fetched, and how it is run.
struct Client {
    name: &'static str,
    fetch: fn(&Path) -> Result<()>,
    run: fn(&Path, &str) -> Result<Command>,
}

const CLIENTS: [Client; 6] = [
    Client {
        name: "kcat",
        fetch: find_kcat,
        run: |_, broker| Ok(shell("kcat.sh", broker)),
    },
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
        name: "franz-go",
        fetch: fetch_go,
        run: |place, broker| Ok(go(place, broker)),
    },
    Client {
        name: "java",
        fetch: fetch_java,
        run: java,
    },
];

/// A node, and where its doors are.
struct Served {
    kafka: String,
    http: String,
    _node: Process,
}

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
    let build = &mut cargo(&["build", "--package", "telpher"]);
    step::run("build the node", build, BUILD_LIMIT)?;
    let place = std::env::current_dir()?.join(PLACE);
    fs::create_dir_all(&place)?;
    let served = serve(&place)?;
    let mut failed = Vec::new();
    for client in CLIENTS.iter().filter(is_wanted) {
        (client.fetch)(&place)?;
        let before = served.requests()?;
        let command = &mut (client.run)(&place, &served.kafka)?;
        if let Err(error) = step::run(client.name, command, RUN_LIMIT) {
            eprintln!("{error:#}");
            failed.push(client.name);
        }
        let asked = served.requests()?.into_iter();
        let asked = asked.filter(|(api, count)| before.get(api) != Some(count));
        let asked: Vec<_> = asked.map(|(api, _)| api).collect();
        eprintln!("   {} asked for: {}", client.name, asked.join(", "));
    }
    if !failed.is_empty() {
        bail!("not as it should be: {}", failed.join(", "));
    }
    Ok(())
}

/// A node with a directory of its own.
fn serve(place: &Path) -> Result<Served> {
    let mut command = Command::new(built("debug")?);
    command.args(["serve", "--dev", "--json", "--end-with-stdin"]);
    command.args(["--native-listen", "127.0.0.1:0", "--native-socket", "none"]);
    command.args(["--http-listen", "127.0.0.1:0"]);
    command.args(["--kafka-listen", "127.0.0.1:0"]);
    command.args(["--slim-listen", "none"]);
    let (node, ready) = Process::start(command.current_dir(place))?;
    let address = |before: &str| {
        let (_, rest) = ready.split_once(before).context("a door has no address")?;
        anyhow::Ok(rest.split('"').next().unwrap_or_default().to_owned())
    };
    Ok(Served {
        kafka: address("\"kafka\":\"")?,
        http: address("\"http\":\"http://")?,
        _node: node,
    })
}

impl Served {
    /// How often each API was asked for since the node has started.
    fn requests(&self) -> Result<BTreeMap<String, u64>> {
        let mut stream = TcpStream::connect(&self.http)?;
        stream.set_read_timeout(Some(METRICS_LIMIT))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let requests = text.lines().filter_map(|line| {
            let line = line.strip_prefix("telpher_kafka_requests_total{api=\"")?;
            let (api, count) = line.split_once("\"} ")?;
            Some((api.to_owned(), count.parse().ok()?))
        });
        let requests: BTreeMap<_, _> = requests.collect();
        ensure!(!requests.is_empty(), "the node counts no requests");
        Ok(requests)
    }
}

fn shell(script: &str, broker: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg(Path::new(SCRIPTS).join(script)).arg(broker);
    command
}

fn find_kcat(_: &Path) -> Result<()> {
    ensure!(
        is_installed("kcat"),
        "kcat is not installed\nhint: apt-get install kcat"
    );
    Ok(())
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

fn fetch_go(place: &Path) -> Result<()> {
    let mut build = Command::new("go");
    build.arg("-C").arg(Path::new(SCRIPTS).join("franz-go"));
    build
        .args(["build", "-o"])
        .arg(place.join("franz-go"))
        .arg(".");
    step::run("go build", &mut build, FETCH_LIMIT)
}

fn go(place: &Path, broker: &str) -> Command {
    let mut command = Command::new(place.join("franz-go"));
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
    let mut command = shell("java.sh", broker);
    command.env("CLASSPATH", fs::read_to_string(classpath(place))?);
    Ok(command)
}
