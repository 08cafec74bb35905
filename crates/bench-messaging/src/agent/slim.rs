//! Agent messages over SLIM's protocol: SLIM's own applications through our SLIM listener, compared
//! in the same run with SLIM's own node.
//!
//! The applications are third-party programs (`bench/peers/README.md`), a process for each role,
//! the same for both nodes: only the node differs. Two applications of our own are compared with
//! them: one speaks the data plane without SLIM's sessions, through both nodes; the other does the
//! same work over the native protocol, through our node only.

mod applications;
pub mod channel;
mod comparisons;
mod measure;
pub mod nodes;
mod python;
mod raw;
mod slimctl;

use std::path::Path;
use std::time::Duration;

pub use applications::Applications;
pub use raw::{RawSpec, receive_raw, send_raw};

use super::native::NativeRun;
use super::{AgentMode, Matrix};
use bench::measurement::Measurement;
use bench::model::{Case, Environment, Results, Setup};
use bench::process::Role;
use bench::workload::driver::{Runner, Workload};
use bench::workload::error::WorkloadError;
use bench::workload::peer::Program;
use bench::workload::placement::Placement;
use bench::workload::surroundings::Surroundings;
use nodes::{THEIRS, TestedNode};
use python::Python;
use raw::Raw;
use slimctl::Slimctl;

/// Runs every case of the matrix that the applications support, through both nodes in turns. If
/// `chosen` is empty, all available applications take part.
///
/// # Errors
/// When a process fails, or the applications are not available.
pub fn run_slim(
    surroundings: &Surroundings,
    matrix: &Matrix,
    chosen: &[Applications],
    runner: Runner,
) -> Result<Results, WorkloadError> {
    let directory = peers(surroundings)?;
    let applications = applications::available(directory, chosen)?;
    let cases = cases(matrix, &applications);
    if !cases.iter().any(|case| case.target == THEIRS) {
        let problem =
            "SLIM's applications send one message at a time from one client, and slimctl has no \
             schedule"
                .to_owned();
        let hint =
            "add --clients 1 --in-flight 1, a mode other than publish, and --rate 0 or python";
        return Err(WorkloadError::Nothing(problem, hint));
    }
    let bench = Bench::start(surroundings, directory, &applications, matrix.placement)?;
    let messages = Messages {
        matrix,
        applications,
        cases,
        bench,
    };
    runner.run(messages)
}

/// A suite of SLIM's applications.
struct Messages<'a> {
    matrix: &'a Matrix,
    applications: Vec<Applications>,
    cases: Vec<Case>,
    bench: Bench,
}

impl Workload for Messages<'_> {
    const NAME: &'static str = "agent-slim";

    fn cases(&self) -> Vec<Case> {
        self.cases.clone()
    }

    fn repeats(&self) -> u32 {
        self.matrix.repeats
    }

    fn setup(&self) -> Setup {
        setup(self.matrix, &self.bench, &self.applications)
    }

    fn environment(&self, environment: Environment) -> Environment {
        environment.placement(self.matrix.placement.description())
    }

    fn measure(&mut self, _: usize, case: &Case) -> Result<Measurement, WorkloadError> {
        self.bench.measure(case, self.matrix.window)
    }

    fn compare(&self, results: &mut Results) {
        comparisons::compare(results);
    }
}

/// Returns the directory of SLIM's programs.
///
/// # Errors
/// When no directory of peers is given.
pub fn peers(surroundings: &Surroundings) -> Result<&Path, WorkloadError> {
    let missing = || {
        let problem = "SLIM's applications and its node are third-party programs".to_owned();
        WorkloadError::Nothing(problem, "add --peers bench/peers/bin")
    };
    surroundings.peers.as_deref().ok_or_else(missing)
}

/// Returns each case through our node by all applications, followed by the same through SLIM's
/// node.
fn cases(matrix: &Matrix, applications: &[Applications]) -> Vec<Case> {
    let mut cases = Vec::new();
    for case in matrix.cases() {
        let is_one_by_one = case.clients == 1 && case.in_flight.is_none_or(|count| count == 1);
        if is_one_by_one && AgentMode::of(&case) != AgentMode::Publish {
            cases.extend(applications.iter().flat_map(|one| one.cases(&case)));
        }
    }
    cases
}

/// Both nodes, for all cases, and the means to start the applications.
struct Bench {
    surroundings: Surroundings,
    placement: Placement,
    ours: TestedNode,
    theirs: TestedNode,
    python: Option<Python>,
    slimctl: Option<Slimctl>,
    raw: Raw,
}

impl Bench {
    fn start(
        surroundings: &Surroundings,
        directory: &Path,
        applications: &[Applications],
        placement: Placement,
    ) -> Result<Self, WorkloadError> {
        let pin = placement.pin(Role::Node);
        let is_python =
            |one: &Applications| matches!(one, Applications::Python | Applications::PythonReliable);
        let python = match applications.iter().any(is_python) {
            true => Some(Python::new(
                Program::SLIM.in_directory(directory)?,
                placement,
            )),
            false => None,
        };
        let slimctl = match applications.contains(&Applications::Slimctl) {
            true => Some(Slimctl::new(
                Program::SLIMCTL.in_directory(directory)?,
                placement,
            )?),
            false => None,
        };
        Ok(Self {
            surroundings: surroundings.clone(),
            placement,
            ours: TestedNode::ours(&surroundings.executable, pin)?,
            theirs: TestedNode::theirs(directory, pin)?,
            python,
            slimctl,
            raw: Raw {
                executable: surroundings.executable.clone(),
                placement,
            },
        })
    }

    /// Runs one repeat of a case, with applications of its own.
    fn measure(&mut self, case: &Case, window: Duration) -> Result<Measurement, WorkloadError> {
        let through = match case.target == THEIRS {
            true => &mut self.theirs,
            false => &mut self.ours,
        };
        let played = match Applications::of(case) {
            Applications::Python | Applications::PythonReliable => {
                let python = self.python.as_ref();
                python.map(|one| one.measure(through, case, window))
            }
            Applications::Slimctl => {
                let slimctl = self.slimctl.as_mut();
                slimctl.map(|one| one.measure(through, case, window))
            }
            Applications::Raw => Some(self.raw.measure(through, case, window)),
            Applications::Native => through.native().map(|node| {
                let mut native = NativeRun {
                    executable: &self.surroundings.executable,
                    placement: self.placement,
                    node,
                };
                native.measure(case, window)
            }),
        };
        let missing = || {
            Err(WorkloadError::Node(format!(
                "no application for {}",
                case.key()
            )))
        };
        played.unwrap_or_else(missing)
    }
}

fn setup(matrix: &Matrix, bench: &Bench, applications: &[Applications]) -> Setup {
    let note = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    let url = |one: &TestedNode| format!("{} {}", one.target, one.url);
    let words = format!(
        "`telpher serve`, and {}; one process each for the suite",
        bench.theirs.words
    );
    let mut notes = vec![
        note("Nodes", &words),
        note(
            "Sender, responder",
            "a process each for every run, and a point to point session between them",
        ),
        note(
            "Write",
            "a reliable session: the receiving session acknowledges each message, as no SLIM node does; over \
             the native protocol the node does",
        ),
    ];
    let played = applications
        .iter()
        .map(|one| note(&format!("Applications, {}", one.name()), one.description()));
    notes.extend(played);
    Setup {
        server: Some([&bench.ours, &bench.theirs].map(url).join(", ")),
        duration: Some(format!("{:?}", matrix.window)),
        repeats: Some(matrix.repeats),
        notes,
        ..Setup::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::workload::surroundings::OURS;

    fn matrix(rates: &[u64]) -> Matrix {
        Matrix {
            modes: vec![AgentMode::RequestReply, AgentMode::Publish],
            clients: vec![1, 2],
            sizes: vec![16],
            rates: rates.to_vec(),
            oneway_rates: vec![0],
            write_rates: vec![0],
            in_flight: vec![1, 8],
            subscribers: vec![1],
            window: Duration::from_secs(1),
            repeats: 1,
            sweep: None,
            placement: Placement::Unpinned,
        }
    }

    #[test]
    fn both_nodes_do_the_same_work_with_one_message() {
        let cases = cases(&matrix(&[0]), &Applications::ALL);
        let seen: Vec<_> = cases
            .iter()
            .map(|case| (case.target.as_str(), Applications::of(case)))
            .collect();
        let expected = [
            (OURS, Applications::Python),
            (THEIRS, Applications::Python),
            (OURS, Applications::PythonReliable),
            (THEIRS, Applications::PythonReliable),
            (OURS, Applications::Slimctl),
            (THEIRS, Applications::Slimctl),
            (OURS, Applications::Raw),
            (THEIRS, Applications::Raw),
            (OURS, Applications::Native),
        ];
        assert_eq!(seen, expected);
        assert!(cases[0].rivals(&cases[1]) && cases[2].rivals(&cases[3]));
        assert!(!cases[0].rivals(&cases[3]) && !cases[8].rivals(&cases[1]));
    }

    #[test]
    fn slimctl_has_no_schedule() {
        let cases = cases(
            &matrix(&[100]),
            &[Applications::Slimctl, Applications::Native],
        );
        let seen: Vec<_> = cases.iter().map(Applications::of).collect();
        assert_eq!(seen, [Applications::Native]);
    }
}
