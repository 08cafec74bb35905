//! `cargo xtask peers`: the floors and the other systems that benchmarks run beside ours.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::step;

/// slimctl alone takes more than an hour and a half to compile on two CPUs.
const BUILD_LIMIT: Duration = Duration::from_secs(4 * 3600);
const SMOKE_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Builds them, or those that the arguments name, and runs each for a moment. Peers that were built
/// are tried even if others could not be built; the task fails then all the same.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let build = &mut Command::new("bench/peers/build.sh");
    let built = step::run("build the peers", build.args(args), BUILD_LIMIT);
    let smoke = &mut Command::new("bench/peers/smoke.sh");
    let tried = step::run("try the peers", smoke, SMOKE_LIMIT);
    built.and(tried)
}
