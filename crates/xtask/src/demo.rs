//! `cargo xtask demo`: runs the demonstration on this machine with one command.

use std::time::Duration;

use anyhow::Result;

use crate::step::{self, cargo};

const LIMIT: Duration = Duration::from_secs(40 * 60);

/// Builds with the profile `demo`, which takes a third of a release's processor time, and runs
/// `telpher demo` with the arguments.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut command = cargo(&[
        "run",
        "--profile",
        "demo",
        "--package",
        "telpher",
        "--",
        "demo",
    ]);
    step::run("demo", command.args(args), LIMIT)
}
