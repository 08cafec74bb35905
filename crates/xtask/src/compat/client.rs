//! A client of the compatibility tests, and the node that it runs against.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::footprint::Process;
use crate::step;

/// Time limit of a package manager.
pub(super) const FETCH_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Time limit of a client's scripts, unless the client has its own.
pub(super) const RUN_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Time limit for the node to answer `/metrics`.
const METRICS_LIMIT: Duration = Duration::from_secs(30);

/// A client: how to fetch it, and how to run it.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// Installs the client below the directory, if that is not done.
    pub(super) fetch: fn(&Path) -> Result<()>,
    /// Returns the command that runs the client against a node.
    pub(super) run: fn(&Path, &TestNode) -> Result<Command>,
    pub(super) limit: Duration,
}

/// A running node and the addresses of its listeners.
pub(super) struct TestNode {
    /// `host:port`.
    pub(super) kafka: String,
    /// `host:port`.
    pub(super) http: String,
    /// `http://host:port`.
    pub(super) slim: String,
    pub(super) _node: Process,
}

impl TestNode {
    /// Returns the values of the counter whose lines on `/metrics` begin with `start`, by label.
    pub(super) fn counters(&self, start: &str) -> Result<BTreeMap<String, u64>> {
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
pub(crate) fn install_python(workspace: &Path, venv: &str, requirements: &Path) -> Result<()> {
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
pub(crate) fn python_of(workspace: &Path, venv: &str) -> PathBuf {
    workspace.join(venv).join("bin/python")
}
