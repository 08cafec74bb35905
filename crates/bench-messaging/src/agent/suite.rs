//! Run of an agent matrix: starts the node and the peers, and for each repeat the processes of its
//! case.

use super::native::NativeRun;
use super::{Matrix, destination};
use bench::measurement::Measurement;
use bench::model::{Case, Environment, Results, Setup};
use bench::process::Role;
use bench::suite::Suite;
use bench::sweep::SweepOptions;
use bench::workload::driver::{Runner, Workload, with_rivals};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::peer::{Amount, Peer, Program};
use bench::workload::surroundings::Surroundings;
use bench::workload::transport::Transport;

/// Runs every case of the matrix, and the same cases on the peers that support them.
///
/// # Errors
/// When a process fails. A message that fails is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    runner: Runner,
) -> Result<Results, WorkloadError> {
    let peer = match &surroundings.peers {
        Some(directory) => {
            let nats = Program::NATS.in_directory(directory)?;
            Some(Peer::start(&nats, matrix.placement, Transport::Tcp)?)
        }
        None => None,
    };
    let messages = Messages {
        matrix,
        surroundings,
        node: Node::start(&surroundings.executable, matrix.placement.pin(Role::Node))?,
        peer,
    };
    runner.run(messages)
}

/// The node and the peer of a suite, shared by all its cases.
struct Messages<'a> {
    matrix: &'a Matrix,
    surroundings: &'a Surroundings,
    node: Node,
    peer: Option<Peer>,
}

impl Workload for Messages<'_> {
    const NAME: &'static str = "agent";

    fn cases(&self) -> Vec<Case> {
        let cases = match self.matrix.sweep {
            Some(_) => Vec::new(),
            None => self.matrix.cases(),
        };
        with_rivals(cases, |case| {
            let able = self.peer.iter().filter(|peer| peer.can(case));
            able.map(Peer::target).collect()
        })
    }

    fn repeats(&self) -> u32 {
        self.matrix.repeats
    }

    fn setup(&self) -> Setup {
        setup(self.matrix, &self.node)
    }

    fn environment(&self, environment: Environment) -> Environment {
        environment.placement(self.matrix.placement.description())
    }

    fn measure(&mut self, _: usize, case: &Case) -> Result<Measurement, WorkloadError> {
        match &mut self.peer {
            Some(peer) if case.target == peer.target() => {
                peer.measure(case, Amount::Time(self.matrix.window))
            }
            _ => self.measure_node(case),
        }
    }

    fn finish(&mut self, suite: &mut Suite) -> Result<(), WorkloadError> {
        if let Some(options) = self.matrix.sweep {
            for case in self.matrix.shapes() {
                self.sweep(suite, &case, options)?;
            }
        }
        Ok(())
    }

    fn notes(&self) -> Vec<(String, String)> {
        self.peer.iter().flat_map(Peer::notes).collect()
    }
}

impl Messages<'_> {
    /// Runs one repeat of a case through the node, with processes of its own.
    fn measure_node(&mut self, case: &Case) -> Result<Measurement, WorkloadError> {
        let mut native = NativeRun {
            executable: &self.surroundings.executable,
            placement: self.matrix.placement,
            node: &mut self.node,
        };
        native.measure(case, self.matrix.window)
    }

    /// Searches the capacity of a case.
    fn sweep(
        &mut self,
        suite: &mut Suite,
        case: &Case,
        options: SweepOptions,
    ) -> Result<(), WorkloadError> {
        let mut sweep = suite.sweep(case.clone(), options)?;
        while let Some(attempt) = sweep.attempt() {
            let case = case.clone().rate(attempt.rate);
            let repeats = (0..options.repeats).map(|_| self.measure_node(&case));
            sweep.record(repeats.collect::<Result<_, _>>()?)?;
        }
        Ok(())
    }
}

fn setup(matrix: &Matrix, node: &Node) -> Setup {
    let note = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    Setup {
        server: Some(node.native.clone()),
        destination: Some(destination(0)),
        duration: Some(format!("{:?}", matrix.window)),
        repeats: Some(matrix.repeats),
        notes: vec![
            note("Node", "`telpher serve`, one process for the whole suite"),
            note(
                "Sender",
                "`telpher bench-role`, a process for each run; a thread and a connection for each client",
            ),
            note(
                "Responder",
                "`telpher bench-role`, a process for each run, on one thread; a connection for each \
                 destination or subscriber",
            ),
        ],
    }
}
