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

use super::cluster::Cluster;
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
    cluster: Option<RunningBroker>,
    kafka: Option<RunningBroker>,
}

/// A running broker, or the brokers of a cluster.
pub(super) struct RunningBroker {
    address: String,
    process: Process,
}

enum Process {
    /// A node, and the directory of its data.
    Node(Box<Node>, TempDir),
    Cluster(Cluster),
    Kafka(Kafka),
}

/// Apache Kafka: one broker or several, with their addresses.
struct Kafka {
    brokers: Vec<(String, Actor)>,
    /// Directory of the data.
    _scratch: TempDir,
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
            cluster: None,
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
                    Subject::Node | Subject::Cluster(_) => {
                        let problem = "no broker is given".to_owned();
                        Err(WorkloadError::Nothing(problem, "give one with -b"))
                    }
                };
            }
            Target::Node(_) => &mut self.node,
            Target::Cluster(_) => &mut self.cluster,
            Target::Kafka | Target::KafkaFlush => &mut self.kafka,
            Target::KafkaCluster(_) | Target::KafkaClusterFlush(_) => &mut self.kafka,
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
            Target::Kafka | Target::KafkaFlush => start_kafka(surroundings, directory, 1),
            Target::KafkaCluster(count) | Target::KafkaClusterFlush(count) => {
                start_kafka(surroundings, directory, count)
            }
            Target::Cluster(count) => start_cluster(surroundings, directory, count),
            Target::Node(_) | Target::Given => start_node(surroundings, directory),
        }
    }

    /// Returns the pids, that of the broker with the address `leader` first.
    pub(super) fn pids(&self, leader: &str) -> Vec<u32> {
        match &self.process {
            Process::Node(node, _) => vec![node.pid()],
            Process::Cluster(cluster) => cluster.pids(leader),
            Process::Kafka(kafka) => {
                let mut brokers: Vec<_> = kafka.brokers.iter().collect();
                brokers.sort_by_key(|(address, _)| address != leader);
                brokers.iter().map(|(_, actor)| actor.pid()).collect()
            }
        }
    }

    /// Fails if the process has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        match &mut self.process {
            Process::Node(node, _) => node.check_alive(),
            Process::Cluster(cluster) => cluster.check_alive(),
            Process::Kafka(kafka) => {
                let mut brokers = kafka.brokers.iter_mut();
                brokers.try_for_each(|(_, actor)| actor.check_alive())
            }
        }
    }

    /// Returns the broker's disk counters, if it reports them.
    pub(super) fn counted(&self) -> Option<DiskCounters> {
        match &self.process {
            Process::Node(node, scratch) => Some(DiskCounters::of(node, scratch.path())),
            Process::Cluster(_) | Process::Kafka(_) => None,
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
        process: Process::Node(Box::new(node), scratch),
    })
}

fn start_cluster(
    surroundings: &Surroundings,
    directory: &Path,
    count: u32,
) -> Result<RunningBroker, WorkloadError> {
    let cluster = Cluster::start(surroundings, directory, count)?;
    let address = cluster.addresses().into_iter().next();
    Ok(RunningBroker {
        address: address.ok_or_else(|| WorkloadError::Node("a cluster without nodes".into()))?,
        process: Process::Cluster(cluster),
    })
}

/// Starts `count` brokers, each of which is also a controller.
fn start_kafka(
    surroundings: &Surroundings,
    directory: &Path,
    count: u32,
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
    let ports: Result<Vec<_>, _> = (0..2 * count).map(|_| free_port()).collect();
    let ports = ports.map_err(WorkloadError::Directory)?;
    let (ports, controllers) = ports.split_at(count as usize);
    let voters = (1..).zip(controllers);
    let voters: Vec<_> = voters
        .map(|(id, port)| format!("{id}@127.0.0.1:{port}"))
        .collect();
    let mut brokers = Vec::new();
    for (id, (port, controller)) in (1..).zip(ports.iter().zip(controllers)) {
        let data = scratch.path().join(format!("broker-{id}"));
        std::fs::create_dir(&data).map_err(WorkloadError::Directory)?;
        let arguments = [
            port.to_string(),
            controller.to_string(),
            data.display().to_string(),
            id.to_string(),
            voters.join(","),
        ];
        let actor = Actor::start(&program, arguments, Pin::Nowhere)?;
        brokers.push((format!("127.0.0.1:{port}"), actor));
    }
    let mut running = RunningBroker {
        address: format!("127.0.0.1:{}", ports[0]),
        process: Process::Kafka(Kafka {
            brokers,
            _scratch: scratch,
        }),
    };
    wait_until_open(&mut running, count as usize)?;
    Ok(running)
}

/// Waits until the broker lists all `count` brokers in its metadata.
fn wait_until_open(running: &mut RunningBroker, count: usize) -> Result<(), WorkloadError> {
    let limit_ns = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        let brokers = brokers_in_metadata(&running.address);
        running.check_alive()?;
        match brokers {
            Ok(known) if known == count => return Ok(()),
            Err(failure) if now_ns() > limit_ns => return Err(node_error(failure)),
            _ => thread::sleep(LOOK),
        }
    }
}

fn brokers_in_metadata(address: &str) -> Result<usize, Failure> {
    let request = metadata::Request {
        topics: Some(Vec::new()),
        ..metadata::Request::default()
    };
    Ok(Session::open(address)?.ask(&request)?.brokers.len())
}

fn node_error(failure: Failure) -> WorkloadError {
    WorkloadError::Node(failure.to_string())
}

impl Drop for Kafka {
    fn drop(&mut self) {
        // Apache Kafka does not end when its input closes, and its data is not needed any more.
        for (_, actor) in &self.brokers {
            let pid = i32::try_from(actor.pid()).ok().and_then(Pid::from_raw);
            // A process that has already ended cannot be killed.
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}
