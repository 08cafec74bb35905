//! Run of an RPC matrix: each of our cases, followed by the same on every other target.

use super::layout::Layout;
use super::matrix::{Amount, Matrix};
use crate::model::{Case, Environment, Results, Setup};
use crate::progress::{Progress, Show};
use crate::suite::Suite;
use crate::workload::{Surroundings, WorkloadError, take_turns};

/// Runs every case of the matrix, and the same cases on floors and peers.
///
/// # Errors
/// When a process fails. A call that fails is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    environment: Environment,
    show: Show,
) -> Result<Results, WorkloadError> {
    let mut layouts = Vec::new();
    let mut cases: Vec<Case> = Vec::new();
    let mut layout_of_case: Vec<usize> = Vec::new();
    for shape in matrix.shapes() {
        let layout = Layout::start(surroundings, shape)?;
        cases.extend(with_rivals(matrix.cases(shape), &layout));
        layouts.push(layout);
        layout_of_case.resize(cases.len(), layouts.len() - 1);
    }
    if cases.is_empty() {
        return Err(no_cases_error());
    }
    let placements: Vec<_> = matrix
        .placements
        .iter()
        .map(|one| one.description())
        .collect();
    let environment = environment.placement(placements.join("; "));
    let progress = Progress::new(cases.len() as u32 * matrix.repeats, show);
    let mut suite = Suite::new("rpc", environment, setup(matrix, &layouts), progress);
    take_turns(&mut suite, &cases, matrix.repeats, |position| {
        layouts[layout_of_case[position]].measure(&cases[position], matrix.amount)
    })?;
    let mut results = suite.finish();
    for (name, how) in layouts.iter().flat_map(Layout::notes) {
        let notes = &mut results.setup.notes;
        if !notes.iter().any(|(known, _)| *known == name) {
            notes.push((name, how));
        }
    }
    Ok(results)
}

fn no_cases_error() -> WorkloadError {
    let problem = "within one process there is no node, no second CPU and no blocking caller";
    WorkloadError::Nothing(
        problem.to_owned(),
        "add --transport tcp, --via direct or --mode serial",
    )
}

/// Returns each of our cases, followed by the same on the other targets.
fn with_rivals(cases: Vec<Case>, layout: &Layout) -> Vec<Case> {
    let mut all = Vec::new();
    for case in cases {
        let rivals = layout.rivals(&case).into_iter().map(|target| Case {
            target: target.to_owned(),
            ..case.clone()
        });
        let rivals: Vec<_> = rivals.collect();
        all.push(case);
        all.extend(rivals);
    }
    all
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
                "`telpher bench-role`, one process for the suite, one thread; an echo",
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
                "`Caller::callbacks`, each reply makes the next call of its slot; the clock is read 16 times \
                 a window",
            ),
        ],
    }
}
