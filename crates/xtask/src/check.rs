//! `cargo xtask check` and `cargo xtask test`: all checks before a commit.
//!
//! All steps use one profile and one set of features, so that each crate is built once. Only the
//! journal is built again, for its crash tests and its mutants. The tests come last, so that the
//! output ends with their result.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::step::expect_none;
use crate::step::{self, cargo};
use crate::{crash, deps, language, mutants, python, setup, ui};

const MINUTE: Duration = Duration::from_secs(60);

/// Tests that run at once for each CPU: the tests of processes mostly wait.
const TESTS_PER_CPU: usize = 2;

/// Installs missing programs, then checks.
pub(crate) fn test(args: &[String]) -> Result<()> {
    setup::run(args)?;
    check(args)
}

/// Checks; writes only build output.
pub(crate) fn check(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let format = &mut cargo(&["fmt", "--all", "--check"]);
    step::run("format", format, 2 * MINUTE)?;
    deps::run(&[])?;
    language::run(&[])?;
    let lints = &mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]);
    step::run("lints", lints, 20 * MINUTE)?;
    let documentation = &mut cargo(&["doc", "--workspace", "--no-deps"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    step::run("documentation", documentation, 10 * MINUTE)?;
    crash::short()?;
    mutants::run(&[])?;
    python::short()?;
    ui::short()?;
    let tests = &mut cargo(&["test", "--workspace"]);
    let threads = thread::available_parallelism()?.get() * TESTS_PER_CPU;
    tests.env("RUST_TEST_THREADS", threads.to_string());
    step::run("tests", tests, 30 * MINUTE)
}
