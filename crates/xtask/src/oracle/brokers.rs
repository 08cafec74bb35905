//! The two that are compared: each with a directory of its own on free loopback ports.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{self, cargo};

const KAFKA: &str = "bench/peers/bin/kafka";
const NODE: &str = "target/debug/telpher";
const PLACE: &str = "target/oracle";

const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 600;

/// Apache Kafka.
pub(super) struct Kafka {
    pub(super) address: String,
    _running: Running,
}

/// A node.
pub(super) struct Node {
    pub(super) address: String,
    _running: Running,
}

/// Ends with its directory.
struct Running {
    child: Child,
    place: PathBuf,
}

impl Kafka {
    pub(super) fn start() -> Result<Self> {
        ensure!(
            Path::new(KAFKA).is_file(),
            "Apache Kafka is not installed\nhint: cargo xtask peers --install kafka"
        );
        let place = place("kafka")?;
        let (port, controller) = (free_port()?, free_port()?);
        let command = &mut Command::new(KAFKA);
        command
            .args([port.to_string(), controller.to_string()])
            .arg(&place);
        let mut running = Running::start(command, place)?;
        let address = format!("127.0.0.1:{port}");
        for _ in 0..LOOKS {
            if TcpStream::connect(&address).is_ok() {
                return Ok(Self {
                    address,
                    _running: running,
                });
            }
            if let Some(status) = running.child.try_wait()? {
                bail!("Apache Kafka has ended: {status}");
            }
            thread::sleep(LOOK);
        }
        bail!("Apache Kafka does not listen on {address}")
    }
}

impl Node {
    pub(super) fn start() -> Result<Self> {
        let build = &mut cargo(&["build", "--package", "telpher"]);
        step::run("build the node", build, BUILD_LIMIT)?;
        let place = place("node")?;
        let command = &mut Command::new(NODE);
        command.args([
            "serve",
            "--json",
            "--end-with-stdin",
            "--log-level",
            "error",
        ]);
        let loopback = "127.0.0.1:0";
        command.args(["--native-listen", loopback, "--http-listen", loopback]);
        command
            .args(["--slim-listen", "none"])
            .args(["--kafka-listen", loopback, "--data"])
            .arg(&place);
        let mut running = Running::start(command, place)?;
        let stdout = running
            .child
            .stdout
            .take()
            .context("a node has an output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = text_of(&line, "kafka").context("the node has no Kafka door")?;
        Ok(Self {
            address,
            _running: running,
        })
    }
}

/// The text of a field in a line of JSON, which holds none with a quote in it.
fn text_of(line: &str, field: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"{field}\":"))?;
    let rest = rest.trim_start().strip_prefix('"')?;
    Some(rest.split_once('"')?.0.to_owned())
}

impl Running {
    fn start(command: &mut Command, place: PathBuf) -> Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        Ok(Self { child, place })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended by itself cannot be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.place);
    }
}

fn place(name: &str) -> Result<PathBuf> {
    let place = PathBuf::from(PLACE).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    Ok(place.canonicalize()?)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_what_a_node_says_when_it_is_ready() {
        let line = r#"{"native":"tcp://127.0.0.1:1","kafka": "127.0.0.1:2","data":null}"#;
        assert_eq!(text_of(line, "kafka"), Some("127.0.0.1:2".to_owned()));
        assert_eq!(text_of(line, "data"), None);
    }
}
