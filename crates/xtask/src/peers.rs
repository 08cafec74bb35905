//! `cargo xtask peers`: the floors and the other systems that benchmarks run beside ours.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::step;

const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
const SMOKE_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Builds them, or those that the arguments name, and runs each for a moment.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let build = &mut Command::new("bench/peers/build.sh");
    step::run("build the peers", build.args(args), BUILD_LIMIT)?;
    let smoke = &mut Command::new("bench/peers/smoke.sh");
    step::run("try the peers", smoke, SMOKE_LIMIT)
}
