//! The two compared brokers, each with its own directory and free loopback ports.

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
/// Log of Apache Kafka, which is not deleted.
const KAFKA_LOG: &str = "target/oracle/kafka.log";

const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of polls: two minutes.
const LOOKS: u32 = 1_200;

/// A running Apache Kafka.
pub(super) struct Kafka {
    pub(super) address: String,
    running: ChildProcess,
    _scratch: ScratchDirectory,
}

/// A running node.
pub(super) struct Node {
    pub(super) address: String,
    _process: Process,
    _scratch: ScratchDirectory,
}

/// Child process, killed on drop.
struct ChildProcess(Child);

/// Directory, deleted on drop.
struct ScratchDirectory(PathBuf);

impl Kafka {
    /// Starts Apache Kafka, and returns when it listens.
    pub(super) fn start() -> Result<Self> {
        ensure!(
            Path::new(KAFKA).is_file(),
            "Apache Kafka is not installed\nhint: cargo xtask peers --install kafka"
        );
        step::heading("start Apache Kafka");
        let scratch = ScratchDirectory::new("kafka")?;
        let (port, controller) = (free_port()?, free_port()?);
        let mut command = Command::new(KAFKA);
        command.args([port.to_string(), controller.to_string()]);
        let log = File::create(KAFKA_LOG)?;
        command.arg(&scratch.0).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        let mut kafka = Self {
            address: format!("127.0.0.1:{port}"),
            running: ChildProcess(child),
            _scratch: scratch,
        };
        kafka.listens()?;
        Ok(kafka)
    }

    fn listens(&mut self) -> Result<()> {
        for _ in 0..LOOKS {
            if TcpStream::connect(&self.address).is_ok() {
                return Ok(());
            }
            if let Some(status) = self.running.0.try_wait()? {
                bail!("Apache Kafka has ended: {status}\nhint: see {KAFKA_LOG}");
            }
            thread::sleep(LOOK);
        }
        bail!(
            "Apache Kafka does not listen on {}\nhint: see {KAFKA_LOG}",
            self.address
        )
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
