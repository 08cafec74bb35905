//! The same over SLIM's protocol: SLIM's own applications through our SLIM door, and beside it through
//! SLIM's own node, in one run.
//!
//! The applications are of others' making (`bench/peers/slim`), a process for each role, and the same for
//! both nodes: what differs is the node.

use std::time::Duration;

use super::sink::final_count;
use super::{AgentMode, Matrix};
use crate::measurement::Measurement;
use crate::model::{Case, CountedBy, Environment, Results, Setup};
use crate::process::{Role, Watch};
use crate::progress::{Progress, Show};
use crate::suite::Suite;
use crate::workload::child::{Actor, ChildError};
use crate::workload::node::Node;
use crate::workload::peer::{LoadReport, Program};
use crate::workload::role::Ready;
use crate::workload::{OURS, PATIENCE, Placement, Surroundings, WorkloadError, take_turns};

/// SLIM's own node in results.
const THEIRS: &str = "slim";

/// Runs every case of the matrix that SLIM's applications have, through both nodes in turns.
///
/// # Errors
/// When a process fails, or the applications are not there.
pub fn run_slim(
    surroundings: &Surroundings,
    matrix: &Matrix,
    environment: Environment,
    show: Show,
) -> Result<Results, WorkloadError> {
    let Some(directory) = &surroundings.peers else {
        let what = "SLIM's applications are programs of others".to_owned();
        return Err(WorkloadError::Nothing(what, "add --peers bench/peers/bin"));
    };
    let program = Program::SLIM.in_directory(directory)?;
    let cases = cases(matrix);
    if cases.is_empty() {
        let what = "SLIM's applications send one message at a time from one client".to_owned();
        let hint = "add --clients 1 --in-flight 1 and a mode other than publish";
        return Err(WorkloadError::Nothing(what, hint));
    }
    let mut bench = Bench::start(surroundings, program, matrix.placement)?;
    let environment = environment.placement(matrix.placement.words());
    let progress = Progress::new(cases.len() as u32 * matrix.repeats, show);
    let mut suite = Suite::new("agent-slim", environment, setup(matrix, &bench), progress);
    take_turns(&mut suite, &cases, matrix.repeats, |position| {
        bench.measure(&cases[position], matrix.window)
    })?;
    Ok(suite.finish())
}

/// Each case through our node, followed by the same through theirs.
fn cases(matrix: &Matrix) -> Vec<Case> {
    let mut cases = Vec::new();
    for case in matrix.cases() {
        let is_one_by_one = case.clients == 1 && case.in_flight.is_none_or(|count| count == 1);
        if is_one_by_one && AgentMode::of(&case) != AgentMode::Publish {
            let case = case.parameter("protocol", "slim");
            let target = THEIRS.to_owned();
            cases.extend([case.clone(), Case { target, ..case }]);
        }
    }
    cases
}

/// A node that the applications go through.
struct Through {
    target: &'static str,
    /// As applications take it.
    url: String,
    process: Process,
}

enum Process {
    Ours(Node),
    Theirs(Actor),
}

impl Through {
    fn pid(&self) -> u32 {
        match &self.process {
            Process::Ours(node) => node.pid(),
            Process::Theirs(actor) => actor.pid(),
        }
    }

    fn check_alive(&mut self) -> Result<(), ChildError> {
        match &mut self.process {
            Process::Ours(node) => node.check_alive(),
            Process::Theirs(actor) => actor.check_alive(),
        }
    }
}

/// Both nodes, for all cases.
struct Bench {
    program: Program,
    placement: Placement,
    nodes: [Through; 2],
}

impl Bench {
    fn start(
        surroundings: &Surroundings,
        program: Program,
        placement: Placement,
    ) -> Result<Self, WorkloadError> {
        let pin = placement.pin(Role::Node);
        let ours = Node::start(&surroundings.executable, pin)?;
        let Some(url) = ours.slim_url().map(str::to_owned) else {
            return Err(WorkloadError::Node("the node has no SLIM door".to_owned()));
        };
        let ours = Through {
            target: OURS,
            url,
            process: Process::Ours(ours),
        };
        let mut theirs = program.start(&["serve", "--listen", "127.0.0.1:0"], pin)?;
        let address = ready(&mut theirs)?;
        let theirs = Through {
            target: THEIRS,
            url: format!("http://{address}"),
            process: Process::Theirs(theirs),
        };
        Ok(Self {
            program,
            placement,
            nodes: [ours, theirs],
        })
    }

    /// One repeat of a case, with applications of its own.
    fn measure(&mut self, case: &Case, window: Duration) -> Result<Measurement, WorkloadError> {
        let theirs = usize::from(case.target == THEIRS);
        let url = self.nodes[theirs].url.clone();
        let mut responder = self.responder(case, &url)?;
        let mut load = self.load(case, &url, window)?;
        let Ready { setup_ns, .. } = load.json()?;
        let node = &mut self.nodes[theirs];
        let watch = Watch::start(&[
            (Role::Sender, load.pid()),
            (Role::Node, node.pid()),
            (Role::Responder, responder.pid()),
        ])?;
        load.say("go")?;
        let report: LoadReport = load.json_while(window + PATIENCE, || {
            node.check_alive()?;
            responder.check_alive()
        })?;
        let measured = report.measurement();
        let sink = match case.mode.counted_by {
            CountedBy::Sink => Some(final_count(&mut responder, measured.completed)?),
            CountedBy::Sender => None,
        };
        let usage = watch.stop();
        node.check_alive()?;
        Ok(Measurement {
            setup_ns: Some(setup_ns),
            sink,
            usage: Some(usage),
            ..measured
        })
    }

    fn responder(&self, case: &Case, url: &str) -> Result<Actor, ChildError> {
        let answer = match AgentMode::of(case) {
            AgentMode::RequestReply => "yes",
            AgentMode::FireAndForget | AgentMode::Write | AgentMode::Publish => "no",
        };
        let size = case.size.to_string();
        let arguments = [
            "respond",
            "--connect",
            url,
            "--answer",
            answer,
            "--size",
            &size,
        ];
        let pin = self.placement.pin(Role::Responder);
        let mut responder = self.program.start(&arguments, pin)?;
        ready(&mut responder)?;
        Ok(responder)
    }

    fn load(&self, case: &Case, url: &str, window: Duration) -> Result<Actor, ChildError> {
        let (size, rate) = (case.size.to_string(), case.rate.to_string());
        let seconds = window.as_secs_f64().to_string();
        let arguments = [
            "load",
            "--connect",
            url,
            "--mode",
            case.mode.name.as_ref(),
            "--size",
            &size,
            "--rate",
            &rate,
            "--seconds",
            &seconds,
        ];
        let pin = self.placement.pin(Role::Sender);
        self.program.start(&arguments, pin)
    }
}

/// Waits until it says that it is ready; what it says behind the word.
fn ready(actor: &mut Actor) -> Result<String, ChildError> {
    let line = actor.line()?;
    match line.strip_prefix("READY") {
        Some(rest) => Ok(rest.trim().to_owned()),
        None => Err(actor.nonsense(line, "expected `READY`".to_owned())),
    }
}

fn setup(matrix: &Matrix, bench: &Bench) -> Setup {
    let note = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    let urls: Vec<_> = bench
        .nodes
        .iter()
        .map(|node| format!("{} {}", node.target, node.url))
        .collect();
    Setup {
        server: Some(urls.join(", ")),
        destination: Some("bench/agent/echo".to_owned()),
        duration: Some(format!("{:?}", matrix.window)),
        repeats: Some(matrix.repeats),
        notes: vec![
            note(
                "Nodes",
                "`telpher serve`, and the node that is part of slim-bindings; one process each for the suite",
            ),
            note(
                "Sender, responder",
                "slim-bindings for Python, unmodified, a process each for every run and a point to point \
                 session; most of the processor time is theirs",
            ),
            note(
                "Write",
                "a reliable session: the receiving session acknowledges each message, as no SLIM node does",
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_nodes_do_the_same_one_message_at_a_time() {
        let matrix = Matrix {
            modes: vec![AgentMode::RequestReply, AgentMode::Publish],
            clients: vec![1, 2],
            sizes: vec![16],
            rates: vec![0],
            oneway_rates: vec![0],
            write_rates: vec![0],
            in_flight: vec![1, 8],
            subscribers: vec![1],
            window: Duration::from_secs(1),
            repeats: 1,
            sweep: None,
            placement: Placement::Unpinned,
        };
        let cases = cases(&matrix);
        let targets: Vec<_> = cases.iter().map(|case| case.target.as_str()).collect();
        assert_eq!(targets, [OURS, THEIRS]);
        assert!(cases[0].rivals(&cases[1]));
    }
}
