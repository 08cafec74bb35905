//! The two nodes that applications go through: ours, and SLIM's own.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::workload::child::{Actor, ChildError, Pin};
use crate::workload::node::Node;
use crate::workload::peer::Program;
use crate::workload::rival::free_port;
use crate::workload::{OURS, PATIENCE, WorkloadError};

/// SLIM's own node in results.
pub(super) const THEIRS: &str = "slim";

/// Between two looks at whether it listens.
const LOOK: Duration = Duration::from_millis(20);

/// A node that runs; it ends with the suite.
pub(super) struct Through {
    pub(super) target: &'static str,
    /// What it is.
    pub(super) words: &'static str,
    /// As applications take it.
    pub(super) url: String,
    process: Process,
}

enum Process {
    Ours(Node),
    Theirs {
        actor: Actor,
        /// Its configuration is in there.
        _directory: Option<TempDir>,
    },
}

impl Through {
    /// Ours, with its SLIM door on a free port.
    pub(super) fn ours(executable: &Path, pin: Pin) -> Result<Self, WorkloadError> {
        let node = Node::start(executable, pin)?;
        let Some(url) = node.slim_url().map(str::to_owned) else {
            return Err(WorkloadError::Node("the node has no SLIM door".to_owned()));
        };
        Ok(Self {
            target: OURS,
            words: "`telpher serve`",
            url,
            process: Process::Ours(node),
        })
    }

    /// Theirs, as `slimctl` starts it, or else as the bindings for Python do.
    pub(super) fn theirs(directory: &Path, pin: Pin) -> Result<Self, WorkloadError> {
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

    pub(super) fn pid(&self) -> u32 {
        match &self.process {
            Process::Ours(node) => node.pid(),
            Process::Theirs { actor, .. } => actor.pid(),
        }
    }

    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        match &mut self.process {
            Process::Ours(node) => node.check_alive(),
            Process::Theirs { actor, .. } => actor.check_alive(),
        }
    }

    /// The node if it is ours, which has other doors too.
    pub(super) fn native(&mut self) -> Option<&mut Node> {
        match &mut self.process {
            Process::Ours(node) => Some(node),
            Process::Theirs { .. } => None,
        }
    }
}

/// What `slimctl slim start` configures by itself, but for the port and the log.
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

/// It does not say when it listens.
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

/// Waits until it says that it is ready; what it says behind the word.
pub(super) fn ready(actor: &mut Actor) -> Result<String, ChildError> {
    let line = actor.line()?;
    match line.strip_prefix("READY") {
        Some(rest) => Ok(rest.trim().to_owned()),
        None => Err(actor.nonsense(line, "expected `READY`".to_owned())),
    }
}
