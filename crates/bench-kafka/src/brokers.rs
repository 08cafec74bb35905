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
use bench::workload::child::{Actor, ChildError, Pin};
use bench::workload::disk_counters::DiskCounters;
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::rival_server::free_port;
use bench::workload::role::Failure;
use bench::workload::spare_segments;
use bench::workload::surroundings::{PATIENCE, Surroundings, temporary_directory};
use meter::clock::now_ns;

/// Name of the program that runs Apache Kafka, in the directory of peers.
pub(super) const PROGRAM: &str = "kafka";

const LOOK: Duration = Duration::from_millis(50);

/// The running brokers.
pub(super) struct Brokers<'a> {
    surroundings: &'a Surroundings,
    subject: &'a Subject,
    directory: &'a Path,
    node: Option<RunningBroker>,
    kafka: Option<RunningBroker>,
}

/// A running broker.
pub(super) struct RunningBroker {
    address: String,
    process: Process,
    /// Directory of its data.
    scratch: TempDir,
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
    ) -> Result<(String, Option<&mut RunningBroker>), WorkloadError> {
        let started = match target {
            Target::Given => {
                return match self.subject {
                    Subject::Broker(address) => Ok((address.clone(), None)),
                    Subject::Node => {
                        let problem = "no broker is given".to_owned();
                        Err(WorkloadError::Nothing(problem, "give one with -b"))
                    }
                };
            }
            Target::Node(_) => &mut self.node,
            Target::Kafka | Target::KafkaFlush => &mut self.kafka,
        };
        let running = match started.take() {
            Some(running) => running,
            None => RunningBroker::start(target, self.surroundings, self.directory)?,
        };
        let running = started.insert(running);
        Ok((running.address.clone(), Some(running)))
    }
}

impl RunningBroker {
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
    pub(super) fn counted(&self) -> Option<DiskCounters> {
        match &self.process {
            Process::Node(node) => Some(DiskCounters::of(node, self.scratch.path())),
            Process::Kafka(_) => None,
        }
    }
}

fn start_node(
    surroundings: &Surroundings,
    directory: &Path,
) -> Result<RunningBroker, WorkloadError> {
    let scratch = temporary_directory(directory)?;
    let node = Node::start_in(&surroundings.executable, scratch.path(), &[])?;
    spare_segments::wait(&scratch.path().join("journal")).map_err(node_error)?;
    let address = node.kafka_address().map(str::to_owned);
    let address =
        address.ok_or_else(|| WorkloadError::Node("the node has no Kafka listener".to_owned()))?;
    Ok(RunningBroker {
        address,
        process: Process::Node(Box::new(node)),
        scratch,
    })
}

fn start_kafka(
    surroundings: &Surroundings,
    directory: &Path,
) -> Result<RunningBroker, WorkloadError> {
    let Some(programs) = &surroundings.peers else {
        let problem = "Apache Kafka is a peer, and no directory of peers is given".to_owned();
        return Err(WorkloadError::Nothing(
            problem,
            "add --peers bench/peers/bin",
        ));
    };
    let program = programs
        .canonicalize()
        .map_err(WorkloadError::Directory)?
        .join(PROGRAM);
    let scratch =
        temporary_directory(&directory.canonicalize().map_err(WorkloadError::Directory)?)?;
    let [port, controller] =
        [free_port(), free_port()].map(|port| port.map_err(WorkloadError::Directory));
    let (port, controller) = (port?, controller?);
    let arguments = [
        port.to_string(),
        controller.to_string(),
        scratch.path().display().to_string(),
    ];
    let mut running = RunningBroker {
        address: format!("127.0.0.1:{port}"),
        process: Process::Kafka(Actor::start(&program, arguments, Pin::Nowhere)?),
        scratch,
    };
    wait_until_open(&mut running)?;
    Ok(running)
}

/// Waits until the broker lists itself in its metadata.
fn wait_until_open(running: &mut RunningBroker) -> Result<(), WorkloadError> {
    let limit_ns = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        let brokers = is_in_metadata(&running.address);
        running.check_alive()?;
        match brokers {
            Ok(true) => return Ok(()),
            Err(failure) if now_ns() > limit_ns => return Err(node_error(failure)),
            _ => thread::sleep(LOOK),
        }
    }
}

fn is_in_metadata(address: &str) -> Result<bool, Failure> {
    let request = metadata::Request {
        topics: Some(Vec::new()),
        ..metadata::Request::default()
    };
    Ok(!Session::open(address)?.ask(&request)?.brokers.is_empty())
}

fn node_error(failure: Failure) -> WorkloadError {
    WorkloadError::Node(failure.to_string())
}

impl Drop for RunningBroker {
    fn drop(&mut self) {
        // Apache Kafka does not end when its input closes, and its data is not needed any more.
        if let Process::Kafka(kafka) = &self.process {
            let pid = i32::try_from(kafka.pid()).ok().and_then(Pid::from_raw);
            // A process that has already ended cannot be killed.
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}
