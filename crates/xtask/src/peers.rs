//! `cargo xtask peers`: builds the floors and the rival systems for benchmarks.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::step;

/// Time limit of the build: slimctl alone takes more than an hour and a half on two CPUs.
const BUILD_LIMIT: Duration = Duration::from_secs(4 * 3600);
const SMOKE_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Builds all peers, or the named ones, and runs each for a moment. Peers that were built are tried
/// even if others could not be built; the task still fails then.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let build = &mut Command::new("bench/peers/build.sh");
    let built = step::run("build the peers", build.args(args), BUILD_LIMIT);
    let smoke = &mut Command::new("bench/peers/smoke.sh");
    let tried = step::run("try the peers", smoke, SMOKE_LIMIT);
    built.and(tried)
}
