//! Run of an agent matrix: starts the node and the peers, and for each repeat the processes of its
//! case.

use std::time::Duration;

use super::native::NativeRun;
use super::{Matrix, destination};
use crate::measurement::Measurement;
use crate::model::{Case, Environment, Results, Setup};
use crate::process::Role;
use crate::progress::{Progress, Show};
use crate::suite::Suite;
use crate::sweep::SweepOptions;
use crate::workload::node::Node;
use crate::workload::peer::{Amount, Peer, Program};
use crate::workload::rpc::Transport;
use crate::workload::{Placement, Surroundings, WorkloadError, take_turns};

/// Runs every case of the matrix, and the same cases on the peers that support them.
///
/// # Errors
/// When a process fails. A message that fails is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    environment: Environment,
    show: Show,
) -> Result<Results, WorkloadError> {
    let mut bench = Bench::start(surroundings, matrix.placement)?;
    let mut peer = match &surroundings.peers {
        Some(directory) => {
            let nats = Program::NATS.in_directory(directory)?;
            Some(Peer::start(&nats, matrix.placement, Transport::Tcp)?)
        }
        None => None,
    };
    let cases: Vec<Case> = match matrix.sweep {
        Some(_) => Vec::new(),
        None => with_peers(matrix.cases(), peer.as_ref()),
    };
    let environment = environment.placement(matrix.placement.description());
    let progress = Progress::new(cases.len() as u32 * matrix.repeats, show);
    let mut suite = Suite::new("agent", environment, setup(matrix, &bench), progress);
    take_turns(&mut suite, &cases, matrix.repeats, |position| {
        let case = &cases[position];
        match &mut peer {
            Some(peer) if case.target == peer.target() => {
                peer.measure(case, Amount::Time(matrix.window))
            }
            _ => bench.measure(case, matrix.window),
        }
    })?;
    if let Some(options) = matrix.sweep {
        for case in matrix.shapes() {
            sweep(&mut suite, &mut bench, &case, options, matrix.window)?;
        }
    }
    let mut results = suite.finish();
    if let Some(peer) = &peer {
        results.setup.notes.extend(peer.notes());
    }
    Ok(results)
}

/// Returns each case, followed by the peer's case of the same workload if it supports it.
fn with_peers(cases: Vec<Case>, peer: Option<&Peer>) -> Vec<Case> {
    let Some(peer) = peer else { return cases };
    let mut all = Vec::new();
    for case in cases {
        let rival = peer.can(&case).then(|| Case {
            target: peer.target().to_owned(),
            ..case.clone()
        });
        all.push(case);
        all.extend(rival);
    }
    all
}

fn sweep(
    suite: &mut Suite,
    bench: &mut Bench,
    case: &Case,
    options: SweepOptions,
    window: Duration,
) -> Result<(), WorkloadError> {
    let mut sweep = suite.sweep(case.clone(), options)?;
    while let Some(attempt) = sweep.attempt() {
        let case = case.clone().rate(attempt.rate);
        let repeats = (0..options.repeats).map(|_| bench.measure(&case, window));
        sweep.record(repeats.collect::<Result<_, _>>()?)?;
    }
    Ok(())
}

fn setup(matrix: &Matrix, bench: &Bench) -> Setup {
    let note = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    Setup {
        server: Some(bench.node.native.clone()),
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

/// The node of a suite, shared by all its cases.
struct Bench {
    surroundings: Surroundings,
    placement: Placement,
    node: Node,
}

impl Bench {
    fn start(surroundings: &Surroundings, placement: Placement) -> Result<Self, WorkloadError> {
        let node = Node::start(&surroundings.executable, placement.pin(Role::Node))?;
        Ok(Self {
            surroundings: surroundings.clone(),
            placement,
            node,
        })
    }

    /// Runs one repeat of a case, with processes of its own.
    fn measure(&mut self, case: &Case, window: Duration) -> Result<Measurement, WorkloadError> {
        let mut native = NativeRun {
            executable: &self.surroundings.executable,
            placement: self.placement,
            node: &mut self.node,
        };
        native.measure(case, window)
    }
}
