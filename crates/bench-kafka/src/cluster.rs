//! Cluster of our own nodes on loopback, started by `telpher cluster dev`.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;

use super::session::Session;
use super::topic;
use bench::workload::child::{Actor, ChildError, Pin};
use bench::workload::error::WorkloadError;
use bench::workload::role::Failure;
use bench::workload::surroundings::{PATIENCE, Surroundings, temporary_directory};

/// Nodes of a cluster. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Cluster {
    nodes: Vec<Node>,
    launcher: Actor,
    /// Directory of the data.
    _scratch: TempDir,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: i32,
    pid: u32,
    kafka: String,
    /// Program and arguments that start the node again.
    command: Vec<String>,
    #[serde(skip)]
    restarted: Option<Actor>,
}

/// The node that leads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leader {
    /// Its index.
    pub(super) node: usize,
    /// Greatest leader epoch of a partition, which grows with every change of leader.
    pub(super) epoch: i32,
}

#[derive(Deserialize)]
struct Started {
    nodes: Vec<Node>,
}

impl Cluster {
    /// Starts `count` nodes and waits until all have a vote.
    pub(super) fn start(
        surroundings: &Surroundings,
        directory: &Path,
        count: u32,
    ) -> Result<Self, WorkloadError> {
        let scratch = temporary_directory(directory)?;
        let data = scratch.path().display().to_string();
        let count = count.to_string();
        let arguments = [
            "cluster", "dev", "--nodes", &count, "--data", &data, "--json",
        ];
        let mut launcher = Actor::start(&surroundings.executable, arguments, Pin::Nowhere)?;
        let line = launcher.line_within(2 * PATIENCE)?;
        let Started { nodes } = launcher.parse(line)?;
        Ok(Self {
            nodes,
            launcher,
            _scratch: scratch,
        })
    }

    /// Returns the number of nodes.
    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the Kafka addresses.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.kafka.clone()).collect()
    }

    /// Returns the pids, that of the node with this Kafka address first.
    pub(super) fn pids(&self, first: &str) -> Vec<u32> {
        let mut nodes: Vec<&Node> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| node.kafka != first);
        nodes.iter().map(|node| node.pid).collect()
    }

    /// Returns the node that leads all partitions of a topic whose replicas are all in sync; `None`
    /// while there is none.
    pub(super) fn leader(&self, name: &str) -> Result<Option<Leader>, Failure> {
        let mut last: Failure = "the cluster has no node".into();
        for address in self.addresses() {
            let state = Session::open(&address).and_then(|mut it| topic::state(&mut it, name));
            match state {
                Ok(state) => {
                    let in_sync = state
                        .iter()
                        .all(|it| it.isr_nodes.len() == self.nodes.len());
                    let id = state.first().map(|it| it.leader_id);
                    let is_led = state.iter().all(|it| Some(it.leader_id) == id);
                    let node = self.nodes.iter().position(|node| Some(node.id) == id);
                    let epoch = state.iter().map(|it| it.leader_epoch).max();
                    let leader = node.zip(epoch).filter(|_| in_sync && is_led);
                    return Ok(leader.map(|(node, epoch)| Leader { node, epoch }));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Fails if a node has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        self.launcher.check_alive()
    }

    /// Sends a signal to a node that runs.
    pub(super) fn signal(&self, node: usize, signal: Signal) -> Result<(), Failure> {
        let pid = i32::try_from(self.nodes[node].pid)?;
        let pid = Pid::from_raw(pid).ok_or("a node has no pid")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Starts a killed node again, with its data.
    pub(super) fn restart(&mut self, node: usize) -> Result<(), ChildError> {
        let node = &mut self.nodes[node];
        // Its process has been killed, and is waited for here.
        node.restarted = None;
        let mut words = node.command.iter();
        let program = words.next().map_or("", String::as_str);
        let arguments = words.map(String::as_str).chain(["--end-with-stdin"]);
        let actor = Actor::start(Path::new(program), arguments, Pin::Nowhere)?;
        node.pid = actor.pid();
        node.restarted = Some(actor);
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The data is not needed any more, so no leadership is handed over.
        for node in 0..self.nodes.len() {
            // A process that has already ended cannot be killed.
            let _ = self.signal(node, Signal::KILL);
        }
        let _ = self.launcher.finish_within(PATIENCE);
    }
}
