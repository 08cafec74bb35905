//! `cargo xtask sim`: the long tier of the simulation.

use std::time::Duration;

use anyhow::Result;

use crate::expect_none;
use crate::step::{self, cargo};

const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs the worlds that are too many for every commit. A failing seed is named and replays.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let words = [
        "test",
        "--release",
        "--package",
        "telpher-sim",
        "--",
        "--ignored",
    ];
    step::run("simulation", &mut cargo(&words), LIMIT)
}
