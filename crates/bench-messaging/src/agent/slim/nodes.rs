//! Nodes of a SLIM case: ours, and SLIM's own.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use bench::workload::child::{Actor, ChildError, Pin};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::peer::Program;
use bench::workload::rival_server::free_port;
use bench::workload::surroundings::{OURS, PATIENCE};

/// Name of SLIM's own node in results.
pub(super) const THEIRS: &str = "slim";

/// Interval between two connection attempts.
const LOOK: Duration = Duration::from_millis(20);

/// A running node. Dropping it ends the process.
pub struct TestedNode {
    /// Name in results.
    pub target: &'static str,
    /// Description of the node for the report.
    pub(super) words: &'static str,
    /// URL of the node, in the form that applications take.
    pub url: String,
    process: Process,
}

enum Process {
    Ours(Node),
    Theirs {
        actor: Actor,
        /// Directory of its configuration.
        _directory: Option<TempDir>,
    },
}

impl TestedNode {
    /// Starts our node, with its SLIM listener on a free port.
    ///
    /// # Errors
    /// When it does not start.
    pub fn ours(executable: &Path, pin: Pin) -> Result<Self, WorkloadError> {
        let node = Node::start(executable, pin)?;
        let Some(url) = node.slim_url().map(str::to_owned) else {
            return Err(WorkloadError::Node(
                "the node has no SLIM listener".to_owned(),
            ));
        };
        Ok(Self {
            target: OURS,
            words: "`telpher serve`",
            url,
            process: Process::Ours(node),
        })
    }

    /// Starts SLIM's node by `slimctl`, or else by the Python bindings.
    ///
    /// # Errors
    /// When neither is in the directory, or the node does not start.
    pub fn theirs(directory: &Path, pin: Pin) -> Result<Self, WorkloadError> {
        match Program::SLIMCTL.in_directory(directory) {
            Ok(slimctl) => Self::of_slimctl(&slimctl, pin),
            Err(_) => Self::of_bindings(&Program::SLIM.in_directory(directory)?, pin),
        }
    }

    fn of_bindings(program: &Program, pin: Pin) -> Result<Self, WorkloadError> {
        let mut actor = program.start(&["serve", "--listen", "127.0.0.1:0"], pin)?;
        let address = ready(&mut actor)?;
        Ok(Self {
            target: THEIRS,
            words: "the node that is part of slim-bindings",
            url: format!("http://{address}"),
            process: Process::Theirs {
                actor,
                _directory: None,
            },
        })
    }

    fn of_slimctl(program: &Program, pin: Pin) -> Result<Self, WorkloadError> {
        let directory = tempfile::tempdir().map_err(WorkloadError::Directory)?;
        let port = free_port()
            .map_err(|error| WorkloadError::Node(format!("there is no free port: {error}")))?;
        let path = directory.path().join("slim.yaml");
        fs::write(&path, configuration(port)).map_err(WorkloadError::Directory)?;
        let path = path.display().to_string();
        let mut actor = program.start(&["slim", "start", "--config", &path], pin)?;
        wait_for_port(&mut actor, port)?;
        Ok(Self {
            target: THEIRS,
            words: "`slimctl slim start` in its default configuration, logging errors only",
            url: format!("http://127.0.0.1:{port}"),
            process: Process::Theirs {
                actor,
                _directory: Some(directory),
            },
        })
    }

    /// Returns the pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match &self.process {
            Process::Ours(node) => node.pid(),
            Process::Theirs { actor, .. } => actor.pid(),
        }
    }

    /// Checks that the process runs.
    ///
    /// # Errors
    /// When it has ended.
    pub fn check_alive(&mut self) -> Result<(), ChildError> {
        match &mut self.process {
            Process::Ours(node) => node.check_alive(),
            Process::Theirs { actor, .. } => actor.check_alive(),
        }
    }

    /// Returns the node if it is ours, which has other listeners too.
    pub(super) fn native(&mut self) -> Option<&mut Node> {
        match &mut self.process {
            Process::Ours(node) => Some(node),
            Process::Theirs { .. } => None,
        }
    }
}

/// Default configuration of `slimctl slim start`, except for the port and the log level.
fn configuration(port: u16) -> String {
    format!(
        r#"runtime:
  n_cores: 0
  thread_name: "slim-worker"
  drain_timeout: 10s
tracing:
  log_level: error
  display_thread_names: true
services:
  slim/0:
    dataplane:
      servers:
        - endpoint: "127.0.0.1:{port}"
          tls:
            insecure: true
      clients: []
"#
    )
}

/// Waits until the port accepts connections, since the node does not report readiness.
fn wait_for_port(actor: &mut Actor, port: u16) -> Result<(), WorkloadError> {
    for _ in 0..PATIENCE.as_nanos() / LOOK.as_nanos() {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        actor.check_alive()?;
        std::thread::sleep(LOOK);
    }
    Err(WorkloadError::Node(format!(
        "SLIM's node does not listen on port {port}"
    )))
}

/// Waits for the line `READY`. Returns the rest of it.
pub(super) fn ready(actor: &mut Actor) -> Result<String, ChildError> {
    let line = actor.line()?;
    match line.strip_prefix("READY") {
        Some(rest) => Ok(rest.trim().to_owned()),
        None => Err(actor.invalid_line(line, "expected `READY`".to_owned())),
    }
}
