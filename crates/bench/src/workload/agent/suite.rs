//! Runs a matrix: starts the node and the peers, and for each repeat the processes of its case.

use std::time::Duration;

use super::matrix::subscriber_count;
use super::sink::final_count;
use super::{AgentMode, Matrix, ReceiverSpec, SenderSpec, Sent, destination};
use crate::measurement::{Measurement, Sink};
use crate::model::{Case, CountedBy, Environment, Results, Setup};
use crate::process::{Role, Watch};
use crate::progress::{Progress, Show};
use crate::suite::Suite;
use crate::sweep::SweepOptions;
use crate::workload::child::Actor;
use crate::workload::node::Node;
use crate::workload::peer::{Amount, Peer, Program};
use crate::workload::role::{self, Ready, Spec};
use crate::workload::rpc::Transport;
use crate::workload::{PATIENCE, Placement, Surroundings, WorkloadError, take_turns};

/// Runs every case of the matrix, and beside it what the peers do of the same.
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
        None => beside_peers(matrix.cases(), peer.as_ref()),
    };
    let environment = environment.placement(matrix.placement.words());
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

/// Each case, followed by the peer's of the same workload where it has one.
fn beside_peers(cases: Vec<Case>, peer: Option<&Peer>) -> Vec<Case> {
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

/// The node under a suite: one for all its cases.
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

    /// One repeat of a case, with processes of its own.
    fn measure(&mut self, case: &Case, window: Duration) -> Result<Measurement, WorkloadError> {
        let mut receiver = match case.mode.counted_by {
            CountedBy::Sink => Some(self.receiver(case)?),
            CountedBy::Sender => None,
        };
        let mut sender = self.sender(case, window)?;
        let Ready { setup_ns, .. } = sender.json()?;
        let mut watched = vec![(Role::Sender, sender.pid()), (Role::Node, self.node.pid())];
        watched.extend(receiver.iter().map(|one| (Role::Responder, one.pid())));
        let watch = Watch::start(&watched)?;
        sender.say("go")?;
        let Sent { tally, window_ns } = sender.json_while(window + PATIENCE, || {
            self.node.check_alive()?;
            receiver.as_mut().map_or(Ok(()), Actor::check_alive)
        })?;
        let measured = tally.over(window_ns);
        let sink = match &mut receiver {
            Some(receiver) => Some(self.count(receiver, case, measured.completed)?),
            None => None,
        };
        let usage = watch.stop();
        self.node.check_alive()?;
        Ok(Measurement {
            setup_ns: Some(setup_ns),
            sink,
            usage: Some(usage),
            ..measured
        })
    }

    fn count(
        &mut self,
        receiver: &mut Actor,
        case: &Case,
        completed: u64,
    ) -> Result<Sink, WorkloadError> {
        // What a node that has ended did not deliver is no loss to be counted.
        self.node.check_alive()?;
        let expected = completed * u64::from(subscriber_count(case));
        Ok(final_count(receiver, expected)?)
    }

    fn sender(&self, case: &Case, window: Duration) -> Result<Actor, WorkloadError> {
        let spec = SenderSpec {
            node: self.node.native.clone(),
            mode: AgentMode::of(case),
            clients: case.clients,
            size: case.size as usize,
            rate: case.rate,
            in_flight: case.in_flight.unwrap_or(1),
            window_ns: window.as_nanos() as u64,
        };
        self.start_role(Role::Sender, &Spec::AgentSender(spec))
    }

    fn receiver(&self, case: &Case) -> Result<Actor, WorkloadError> {
        let destinations = (0..case.clients).map(destination);
        let copies = subscriber_count(case) as usize;
        let spec = ReceiverSpec {
            node: self.node.native.clone(),
            names: destinations
                .flat_map(|name| std::iter::repeat_n(name, copies))
                .collect(),
            size: case.size as usize,
        };
        let mut receiver = self.start_role(Role::Responder, &Spec::AgentReceiver(spec))?;
        let Ready { .. } = receiver.json()?;
        Ok(receiver)
    }

    fn start_role(&self, role: Role, spec: &Spec) -> Result<Actor, WorkloadError> {
        let pin = self.placement.pin(role);
        Ok(role::start(&self.surroundings.executable, spec, pin)?)
    }
}
