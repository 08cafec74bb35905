//! `cargo xtask sim`: the long simulation tests, or the worlds of conversations under given seeds.

use std::time::Duration;

use anyhow::Result;

use crate::step::{self, cargo};

const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Test that runs the worlds of conversations under given seeds.
const CONVERSATIONS: &str = "conversations::no_message_is_lost_in_thousands_of_worlds";

/// Runs the worlds that are too many for every commit, or a number of worlds of conversations, or
/// one of these again. A failing seed is printed and replays with `--seed`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut command = cargo(&["test", "--release", "--package", "telpher-sim"]);
    if args.is_empty() {
        command.args(["--", "--ignored"]);
        return step::run("simulation", &mut command, LIMIT);
    }
    let seeds = crate::crash::seeds("sim", args)?;
    command.args(["--test", "it", "--", "--ignored", "--exact"]);
    command.arg(CONVERSATIONS).env("TELPHER_SIM_SEEDS", &seeds);
    let title = format!("simulate conversations under the seeds {seeds}");
    step::run(&title, &mut command, LIMIT)
}
