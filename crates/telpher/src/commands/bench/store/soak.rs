//! `telpher bench store --soak`: constant memory under a long load.

use std::time::Duration;

use bench::workload::surroundings::Surroundings;
use bench_storage::store::{self, Matrix};
use checks::store::soak::{self, Course};

use super::super::outcome::{Style, failure};
use super::args::Args;
use console::output;
use console::{Exit, Failure};

pub(super) fn run(args: &Args, length: Duration) -> Result<(), Failure> {
    let matrix = Matrix {
        window: length,
        repeats: 1,
        ..args.matrix()
    };
    soak::check_space(&matrix).map_err(failure)?;
    let mut courses = Vec::new();
    let styles = [Style::Fleetlm, Style::Table];
    args.outcome.of("soak", &styles, |surroundings, runner| {
        // Only the memory of a Telpher node is checked, so no peers run.
        let alone = Surroundings {
            peers: None,
            ..surroundings.clone()
        };
        let results = store::run(&alone, &matrix, runner)?;
        courses = soak::courses(&results);
        Ok(results)
    })?;
    for (case, course) in &courses {
        output::note(&course_line(case, course));
    }
    match courses.iter().all(|(_, course)| course.is_flat()) && !courses.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Exit::Failed, "memory grew during the run")
            .hint("see plots/memory-*.svg in the results directory")),
    }
}

fn course_line(case: &str, course: &Course) -> String {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let verdict = match course.is_flat() {
        true => "flat",
        false => "not flat",
    };
    format!(
        "memory: {verdict}, {:.1} MiB in the middle, {:.1} MiB at the end ({case})",
        mib(course.middle_bytes),
        mib(course.end_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soak_memory_line_has_a_verdict() {
        let course = |end_mib: u32| Course {
            middle_bytes: f64::from(100 << 20),
            end_bytes: f64::from(end_mib << 20),
        };
        let flat = course_line("telpher-store", &course(101));
        assert_eq!(
            flat,
            "memory: flat, 100.0 MiB in the middle, 101.0 MiB at the end (telpher-store)"
        );
        assert!(course_line("x", &course(150)).starts_with("memory: not flat"));
    }
}
