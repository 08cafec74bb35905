//! Processes behind the calls of one shape: a callee, a node if calls go through one, and the
//! peers.

use std::path::Path;

use super::matrix::{Amount, RpcMode, Shape};
use super::{CALLEE, CallCounts, LoadSpec, ServerSpec, Via};
use bench::measurement::Measurement;
use bench::model::Case;
use bench::process::{Role, Watch};
use bench::workload::child::{Actor, ChildError};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::peer::{self, Peer, Program};
use bench::workload::role::{self, Ready, RoleSpec};
use bench::workload::surroundings::{PATIENCE, Surroundings};
use bench::workload::transport::Transport;

/// A running callee, and the peers.
pub(super) struct Layout {
    surroundings: Surroundings,
    shape: Shape,
    /// Address for the caller; `None` within one process.
    address: Option<String>,
    callee: Option<Actor>,
    node: Option<Node>,
    peers: Vec<Peer>,
    /// Directory of the socket.
    directory: tempfile::TempDir,
}

impl Layout {
    /// Starts the processes.
    pub(super) fn start(surroundings: &Surroundings, shape: Shape) -> Result<Self, WorkloadError> {
        let mut layout = Self {
            surroundings: surroundings.clone(),
            shape,
            address: None,
            callee: None,
            node: None,
            peers: Vec::new(),
            directory: tempfile::tempdir().map_err(WorkloadError::Directory)?,
        };
        match shape.via {
            Via::Direct => layout.start_direct()?,
            Via::Node => layout.start_with_node()?,
        }
        if let Some(directory) = &surroundings.peers {
            for program in programs(shape) {
                let program = program.in_directory(directory)?;
                let peer = Peer::start(&program, shape.placement, shape.transport)?;
                layout.peers.push(peer);
            }
        }
        Ok(layout)
    }

    fn start_direct(&mut self) -> Result<(), WorkloadError> {
        let listen = match self.shape.transport {
            Transport::Inproc => return Ok(()),
            Transport::Tcp => "tcp://127.0.0.1:0".to_owned(),
            Transport::Unix => format!("unix://{}/rpc.sock", self.directory.path().display()),
        };
        self.address = self.start_callee(listen, false)?;
        Ok(())
    }

    fn start_with_node(&mut self) -> Result<(), WorkloadError> {
        let pin = self.shape.placement.pin(Role::Node);
        let node = Node::start(&self.surroundings.executable, pin)?;
        let address = match self.shape.transport {
            Transport::Unix => node.socket.clone(),
            Transport::Tcp | Transport::Inproc => node.native.clone(),
        };
        self.node = Some(node);
        self.start_callee(address.clone(), true)?;
        self.address = Some(format!("{address}#{CALLEE}"));
        Ok(())
    }

    /// Starts the callee. Returns its address.
    fn start_callee(
        &mut self,
        address: String,
        through_node: bool,
    ) -> Result<Option<String>, WorkloadError> {
        let spec = ServerSpec {
            address,
            through_node,
        };
        let mut callee = self.start_role(Role::Responder, &spec)?;
        let Ready { address, .. } = callee.json()?;
        self.callee = Some(callee);
        Ok(address)
    }

    fn start_role(&self, role: Role, spec: &impl RoleSpec) -> Result<Actor, WorkloadError> {
        let executable: &Path = &self.surroundings.executable;
        Ok(role::start(
            executable,
            spec,
            self.shape.placement.pin(role),
        )?)
    }

    /// Returns the called address, for a report.
    pub(super) fn address(&self) -> &str {
        self.address.as_deref().unwrap_or("inproc://")
    }

    /// Returns the targets that can run a case.
    pub(super) fn rivals(&self, case: &Case) -> Vec<&'static str> {
        let able = self.peers.iter().filter(|peer| peer.can(case));
        able.map(Peer::target).collect()
    }

    /// Returns the peers' notes about their method.
    pub(super) fn notes(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.peers.iter().flat_map(Peer::notes)
    }

    /// Runs one repeat of a case, with a caller of its own.
    pub(super) fn measure(
        &mut self,
        case: &Case,
        amount: Amount,
    ) -> Result<Measurement, WorkloadError> {
        let mut peers = self.peers.iter_mut();
        if let Some(peer) = peers.find(|peer| peer.target() == case.target) {
            let amount = match amount {
                Amount::Window(window) => peer::Amount::Time(window),
                Amount::Calls(calls) => peer::Amount::Messages(calls),
            };
            return peer.measure(case, amount);
        }
        let spec = LoadSpec {
            address: self.address.clone(),
            mode: RpcMode::of(case),
            in_flight: case.in_flight.unwrap_or(1),
            size: case.size as usize,
            amount,
        };
        let mut caller = self.start_role(Role::Sender, &spec)?;
        let Ready { setup_ns, .. } = caller.json()?;
        let mut watched = vec![(Role::Sender, caller.pid())];
        watched.extend(self.callee.iter().map(|one| (Role::Responder, one.pid())));
        watched.extend(self.node.iter().map(|one| (Role::Node, one.pid())));
        let watch = Watch::start(&watched)?;
        caller.write_line("go")?;
        let patience = match amount {
            Amount::Window(window) => window + PATIENCE,
            Amount::Calls(_) => 5 * PATIENCE,
        };
        let CallCounts { tally, window_ns } = caller.json_while(patience, || self.check_alive())?;
        let usage = watch.stop();
        self.check_alive()?;
        Ok(Measurement {
            setup_ns: Some(setup_ns),
            usage: Some(usage),
            ..tally.over(window_ns)
        })
    }

    fn check_alive(&mut self) -> Result<(), ChildError> {
        if let Some(node) = &mut self.node {
            node.check_alive()?;
        }
        if let Some(callee) = &mut self.callee {
            callee.check_alive()?;
        }
        Ok(())
    }
}

/// Returns the peers for a shape.
fn programs(shape: Shape) -> Vec<Program> {
    match (shape.via, shape.transport) {
        (_, Transport::Inproc) => Vec::new(),
        (Via::Direct, _) => vec![Program::FLOOR, Program::ZMQ, Program::TARPC, Program::TONIC],
        (Via::Node, Transport::Tcp) => vec![Program::NATS],
        // NATS has no Unix sockets.
        (Via::Node, Transport::Unix) => Vec::new(),
    }
}
