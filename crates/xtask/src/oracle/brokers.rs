//! The compared brokers, each with its own directory and free loopback ports.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::footprint::{Process, built};
use crate::step::{self, cargo};

const KAFKA: &str = "bench/peers/bin/kafka";
const SCRATCH: &str = "target/oracle";

const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of polls: two minutes.
const LOOKS: u32 = 1_200;

/// Brokers of Apache Kafka, each of which is also a controller.
pub(super) struct Kafka {
    /// Address of the broker with the id 1.
    pub(super) address: String,
    /// By id.
    running: BTreeMap<i32, ChildProcess>,
    scratch: ScratchDirectory,
}

/// A running node.
pub(super) struct Node {
    pub(super) address: String,
    _process: Process,
    _scratch: ScratchDirectory,
}

/// Three nodes of a cluster, started by `telpher cluster dev`.
pub(super) struct Nodes {
    /// Address of one of them.
    pub(super) address: String,
    /// Process ids by the id of the node.
    pids: BTreeMap<i32, u32>,
    _launcher: Process,
    _scratch: ScratchDirectory,
}

/// Child process, killed on drop.
struct ChildProcess(Child);

/// Directory, deleted on drop.
struct ScratchDirectory(PathBuf);

impl Kafka {
    /// Starts `count` brokers of Apache Kafka, and returns when they listen.
    pub(super) fn start(count: i32) -> Result<Self> {
        ensure!(
            Path::new(KAFKA).is_file(),
            "Apache Kafka is not installed\nhint: cargo xtask peers --install kafka"
        );
        step::heading("start Apache Kafka");
        let scratch = ScratchDirectory::new("kafka")?;
        let mut ports = BTreeMap::new();
        for id in 1..=count {
            ports.insert(id, (free_port()?, free_port()?));
        }
        let voters = ports
            .iter()
            .map(|(id, (_, controller))| format!("{id}@127.0.0.1:{controller}"));
        let voters: Vec<_> = voters.collect();
        let voters = voters.join(",");
        let mut kafka = Self {
            address: format!("127.0.0.1:{}", ports[&1].0),
            running: BTreeMap::new(),
            scratch,
        };
        for (id, (port, controller)) in &ports {
            let data = kafka.scratch.0.join(id.to_string());
            fs::create_dir(&data)?;
            let mut command = Command::new(KAFKA);
            command.args([port.to_string(), controller.to_string()]);
            command.arg(data).args([&id.to_string(), &voters]);
            let log = File::create(log_of(*id))?;
            command.stdin(Stdio::null());
            command.stdout(log.try_clone()?).stderr(log);
            let child = command.spawn().with_context(|| format!("{command:?}"))?;
            kafka.running.insert(*id, ChildProcess(child));
        }
        for (id, (port, _)) in ports {
            kafka.listens(id, port)?;
        }
        Ok(kafka)
    }

    fn listens(&mut self, id: i32, port: u16) -> Result<()> {
        let log = log_of(id);
        for _ in 0..LOOKS {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            for process in self.running.values_mut() {
                if let Some(status) = process.0.try_wait()? {
                    bail!("Apache Kafka has ended: {status}\nhint: see {log}");
                }
            }
            thread::sleep(LOOK);
        }
        bail!("Apache Kafka does not listen on port {port}\nhint: see {log}")
    }

    /// Kills a broker.
    pub(super) fn kill(&mut self, id: i32) -> Result<()> {
        let process = self.running.remove(&id);
        process.with_context(|| format!("Apache Kafka has no broker {id}"))?;
        Ok(())
    }
}

/// Returns the path of a broker's log, which is not deleted.
fn log_of(id: i32) -> String {
    format!("{SCRATCH}/kafka-{id}.log")
}

impl Nodes {
    /// Builds and starts three nodes.
    pub(super) fn start() -> Result<Self> {
        let build = &mut cargo(&["build", "--package", "telpher"]);
        step::run("build the node", build, BUILD_LIMIT)?;
        let scratch = ScratchDirectory::new("nodes")?;
        let mut command = Command::new(built("debug")?);
        command.args(["cluster", "dev", "--nodes", "3", "--json", "--data"]);
        let (launcher, ready) = Process::start(command.arg(&scratch.0))?;
        let mut pids = BTreeMap::new();
        for node in ready.split("\"id\":").skip(1) {
            let (id, rest) = node.split_once(',').context("a node has no id")?;
            let (_, pid) = rest.split_once("\"pid\":").context("a node has no pid")?;
            let end = pid.find(|it: char| !it.is_ascii_digit());
            let pid = &pid[..end.unwrap_or(pid.len())];
            pids.insert(id.parse().context("an id")?, pid.parse().context("a pid")?);
        }
        ensure!(pids.len() == 3, "three nodes are not ready: {ready}");
        Ok(Self {
            address: text_of(&ready, "kafka").context("a node has no Kafka listener")?,
            pids,
            _launcher: launcher,
            _scratch: scratch,
        })
    }

    /// Kills a node.
    pub(super) fn kill(&mut self, id: i32) -> Result<()> {
        let pid = self.pids.remove(&id);
        let pid = pid.with_context(|| format!("the cluster has no node {id}"))?;
        // Use the shell's own `kill`: the program may not be installed.
        let kill = format!("kill -s KILL {pid}");
        let status = Command::new("sh").args(["-c", &kill]).status()?;
        ensure!(status.success(), "node {id} cannot be killed");
        Ok(())
    }
}

impl Node {
    /// Builds and starts the node.
    pub(super) fn start() -> Result<Self> {
        let build = &mut cargo(&["build", "--package", "telpher"]);
        step::run("build the node", build, BUILD_LIMIT)?;
        let scratch = ScratchDirectory::new("node")?;
        let mut command = Command::new(built("debug")?);
        command.args(["serve", "--json", "--end-with-stdin"]);
        command.args(["--log-level", "error", "--slim-listen", "none"]);
        for door in ["--native-listen", "--http-listen", "--kafka-listen"] {
            command.args([door, "127.0.0.1:0"]);
        }
        let (process, ready) = Process::start(command.arg("--data").arg(&scratch.0))?;
        Ok(Self {
            address: text_of(&ready, "kafka").context("the node has no Kafka listener")?,
            _process: process,
            _scratch: scratch,
        })
    }
}

/// Returns the text of a field in a line of JSON, whose values contain no quotes.
fn text_of(line: &str, field: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"{field}\":"))?;
    let rest = rest.trim_start().strip_prefix('"')?;
    Some(rest.split_once('"')?.0.to_owned())
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ScratchDirectory {
    fn new(name: &str) -> Result<Self> {
        let scratch = PathBuf::from(SCRATCH).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        Ok(Self(scratch.canonicalize()?))
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // A directory that cannot be deleted stays below `target`.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_the_ready_line() {
        let line = r#"{"native":"tcp://127.0.0.1:1","kafka": "127.0.0.1:2","data":null}"#;
        assert_eq!(text_of(line, "kafka"), Some("127.0.0.1:2".to_owned()));
        assert_eq!(text_of(line, "data"), None);
    }
}
