//! Run of an RPC matrix: each of our cases, followed by the same on every other target.

use super::layout::Layout;
use super::matrix::{Amount, Matrix};
use bench::measurement::Measurement;
use bench::model::{Case, Environment, Results, Setup};
use bench::workload::driver::{Runner, Workload, with_rivals};
use bench::workload::error::WorkloadError;
use bench::workload::surroundings::Surroundings;

/// Runs every case of the matrix, and the same cases on floors and peers.
///
/// # Errors
/// When a process fails. A call that fails is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    runner: Runner,
) -> Result<Results, WorkloadError> {
    let mut calls = Calls {
        matrix,
        layouts: Vec::new(),
        cases: Vec::new(),
    };
    for (index, shape) in matrix.shapes().into_iter().enumerate() {
        let layout = Layout::start(surroundings, shape)?;
        let cases = with_rivals(matrix.cases(shape), |case| layout.rivals(case));
        calls
            .cases
            .extend(cases.into_iter().map(|case| (case, index)));
        calls.layouts.push(layout);
    }
    match calls.cases.is_empty() {
        true => Err(no_cases_error()),
        false => runner.run(calls),
    }
}

/// The layouts of a suite, and each case with the index of its layout.
struct Calls<'a> {
    matrix: &'a Matrix,
    layouts: Vec<Layout>,
    cases: Vec<(Case, usize)>,
}

impl Workload for Calls<'_> {
    const NAME: &'static str = "rpc";

    fn cases(&self) -> Vec<Case> {
        self.cases.iter().map(|(case, _)| case.clone()).collect()
    }

    fn repeats(&self) -> u32 {
        self.matrix.repeats
    }

    fn setup(&self) -> Setup {
        setup(self.matrix, &self.layouts)
    }

    fn environment(&self, environment: Environment) -> Environment {
        let placements = self.matrix.placements.iter();
        let placements: Vec<_> = placements.map(|one| one.description()).collect();
        environment.placement(placements.join("; "))
    }

    fn measure(&mut self, position: usize, case: &Case) -> Result<Measurement, WorkloadError> {
        let (_, layout) = self.cases[position];
        self.layouts[layout].measure(case, self.matrix.amount)
    }

    /// Returns the notes of the layouts, each once.
    fn notes(&self) -> Vec<(String, String)> {
        let mut known = self.setup().notes;
        let described = known.len();
        for (name, how) in self.layouts.iter().flat_map(Layout::notes) {
            if !known.iter().any(|(other, _)| *other == name) {
                known.push((name, how));
            }
        }
        known.split_off(described)
    }
}

fn no_cases_error() -> WorkloadError {
    let problem = "within one process there is no node, no second CPU and no blocking caller";
    WorkloadError::Nothing(
        problem.to_owned(),
        "add --transport tcp, --via direct or --mode serial",
    )
}

fn setup(matrix: &Matrix, layouts: &[Layout]) -> Setup {
    let note = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    let addresses: Vec<_> = layouts.iter().map(Layout::address).collect();
    Setup {
        server: Some(addresses.join(", ")),
        destination: None,
        duration: Some(match matrix.amount {
            Amount::Window(window) => format!("{window:?}"),
            Amount::Calls(calls) => format!("{calls} calls"),
        }),
        repeats: Some(matrix.repeats),
        notes: vec![
            note(
                "Caller",
                "`telpher bench-role`, a process for each run, one thread, one connection",
            ),
            note(
                "Callee",
                "`telpher bench-role`, one process for the suite, one thread; an echo that \
                 borrows the request",
            ),
            note("Serial", "`Caller::call`, awaited, one after the other"),
            note(
                "Blocking",
                "`blocking::Client::call_with`, no runtime, adaptive spin",
            ),
            note(
                "Concurrent",
                "`Caller::call_all`, a sliding window, replies in order",
            ),
            note(
                "Callback",
                "`Caller::callbacks_in_batches`, each reply makes the next call of its slot; the clock is \
                 read once for the replies of a read",
            ),
        ],
    }
}
