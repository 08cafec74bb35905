//! Measured brokers: each is started once for all runs, or is already running.
//!
//! Code that Apache Kafka's virtual machine has compiled stays compiled from run to run, which is
//! to its advantage. While one broker is measured, the others are idle.

use std::path::Path;
use std::thread;
use std::time::Duration;

use kafka::metadata;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::matrix::{Subject, Target};
use super::session::Session;
use crate::clock::now_ns;
use crate::workload::child::{Actor, ChildError, Pin};
use crate::workload::counted::Counted;
use crate::workload::journal::prepared;
use crate::workload::node::Node;
use crate::workload::rival::free_port;
use crate::workload::role::Failure;
use crate::workload::{PATIENCE, Surroundings, WorkloadError, place};

/// Name of the program that runs Apache Kafka, in the directory of peers.
pub(super) const PROGRAM: &str = "kafka";

const LOOK: Duration = Duration::from_millis(50);

/// The running brokers.
pub(super) struct Brokers<'a> {
    surroundings: &'a Surroundings,
    subject: &'a Subject,
    directory: &'a Path,
    node: Option<Running>,
    kafka: Option<Running>,
}

/// One running broker.
pub(super) struct Running {
    address: String,
    process: Process,
    /// Directory of its data.
    place: TempDir,
}

enum Process {
    Node(Box<Node>),
    Kafka(Actor),
}

impl<'a> Brokers<'a> {
    /// Makes an empty set; brokers are started on first use.
    pub(super) fn new(
        surroundings: &'a Surroundings,
        subject: &'a Subject,
        directory: &'a Path,
    ) -> Self {
        Self {
            surroundings,
            subject,
            directory,
            node: None,
            kafka: None,
        }
    }

    /// Returns the address of a target's broker, and the broker if it was started here.
    ///
    /// # Errors
    /// When the broker does not start.
    pub(super) fn of(
        &mut self,
        target: Target,
    ) -> Result<(String, Option<&mut Running>), WorkloadError> {
        let started = match target {
            Target::Given => {
                return match self.subject {
                    Subject::Broker(address) => Ok((address.clone(), None)),
                    Subject::Node => {
                        let what = "no broker is given".to_owned();
                        Err(WorkloadError::Nothing(what, "give one with -b"))
                    }
                };
            }
            Target::Node(_) => &mut self.node,
            Target::Kafka | Target::KafkaFlush => &mut self.kafka,
        };
        let running = match started.take() {
            Some(running) => running,
            None => Running::start(target, self.surroundings, self.directory)?,
        };
        let running = started.insert(running);
        Ok((running.address.clone(), Some(running)))
    }
}

impl Running {
    fn start(
        target: Target,
        surroundings: &Surroundings,
        directory: &Path,
    ) -> Result<Self, WorkloadError> {
        match target {
            Target::Kafka | Target::KafkaFlush => start_kafka(surroundings, directory),
            Target::Node(_) | Target::Given => start_node(surroundings, directory),
        }
    }

    /// Returns the pid.
    pub(super) fn pid(&self) -> u32 {
        match &self.process {
            Process::Node(node) => node.pid(),
            Process::Kafka(kafka) => kafka.pid(),
        }
    }

    /// Fails if the process has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        match &mut self.process {
            Process::Node(node) => node.check_alive(),
            Process::Kafka(kafka) => kafka.check_alive(),
        }
    }

    /// Returns the broker's disk counters, if it reports them.
    pub(super) fn counted(&self) -> Option<Counted> {
        match &self.process {
            Process::Node(node) => Some(Counted::of(node, self.place.path())),
            Process::Kafka(_) => None,
        }
    }
}

fn start_node(surroundings: &Surroundings, directory: &Path) -> Result<Running, WorkloadError> {
    let place = place(directory)?;
    let node = Node::start_in(&surroundings.executable, place.path(), &[])?;
    prepared::wait(&place.path().join("journal")).map_err(told)?;
    let address = node.kafka_address().map(str::to_owned);
    let address =
        address.ok_or_else(|| WorkloadError::Node("the node has no Kafka listener".to_owned()))?;
    Ok(Running {
        address,
        process: Process::Node(Box::new(node)),
        place,
    })
}

fn start_kafka(surroundings: &Surroundings, directory: &Path) -> Result<Running, WorkloadError> {
    let Some(programs) = &surroundings.peers else {
        let what = "Apache Kafka is a peer, and no directory of peers is given".to_owned();
        return Err(WorkloadError::Nothing(what, "add --peers bench/peers/bin"));
    };
    let program = programs
        .canonicalize()
        .map_err(WorkloadError::Directory)?
        .join(PROGRAM);
    let place = place(&directory.canonicalize().map_err(WorkloadError::Directory)?)?;
    let [port, controller] =
        [free_port(), free_port()].map(|port| port.map_err(WorkloadError::Directory));
    let (port, controller) = (port?, controller?);
    let arguments = [
        port.to_string(),
        controller.to_string(),
        place.path().display().to_string(),
    ];
    let mut running = Running {
        address: format!("127.0.0.1:{port}"),
        process: Process::Kafka(Actor::start(&program, arguments, Pin::Nowhere)?),
        place,
    };
    wait_until_open(&mut running)?;
    Ok(running)
}

/// Waits until the broker lists itself in its metadata.
fn wait_until_open(running: &mut Running) -> Result<(), WorkloadError> {
    let limit_ns = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        let brokers = knows_itself(&running.address);
        running.check_alive()?;
        match brokers {
            Ok(true) => return Ok(()),
            Err(failure) if now_ns() > limit_ns => return Err(told(failure)),
            _ => thread::sleep(LOOK),
        }
    }
}

fn knows_itself(address: &str) -> Result<bool, Failure> {
    let request = metadata::Request {
        topics: Some(Vec::new()),
        ..metadata::Request::default()
    };
    Ok(!Session::open(address)?.ask(&request)?.brokers.is_empty())
}

fn told(failure: Failure) -> WorkloadError {
    WorkloadError::Node(failure.to_string())
}

impl Drop for Running {
    fn drop(&mut self) {
        // Apache Kafka does not end when its input closes, and its data is not needed any more.
        if let Process::Kafka(kafka) = &self.process {
            let pid = i32::try_from(kafka.pid()).ok().and_then(Pid::from_raw);
            // A process that has already ended cannot be killed.
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}
