//! `cargo xtask crash`: the journal crashed under many seeds, or under one of them again.
//!
//! The proofs are built with optimisation, which makes them ten times as many in a minute, and
//! with all assertions.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::step::{self, cargo};

/// What `cargo xtask test` runs.
const SEEDS_SHORT: &str = "0..10000";

/// What the task runs unless it is told otherwise.
const SEEDS_LONG: &str = "0..1000000";

const LIMIT_SHORT: Duration = Duration::from_secs(10 * 60);
const LIMIT_LONG: Duration = Duration::from_secs(12 * 60 * 60);

/// Runs as many seeds as asked for. The first that fails is named and replays with `--seed`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let seeds = match args {
        [] => SEEDS_LONG.to_owned(),
        args => seeds("crash", args)?,
    };
    crash(&seeds, LIMIT_LONG)
}

/// Runs the seeds of every commit.
pub(crate) fn short() -> Result<()> {
    crash(SEEDS_SHORT, LIMIT_SHORT)
}

fn crash(seeds: &str, limit: Duration) -> Result<()> {
    let words = [
        "test",
        "--package",
        "telpher-journal",
        "--config",
        "profile.dev.package.telpher-journal.opt-level=2",
        "--test",
        "proof",
        "--",
        "--exact",
        "crash::whatever_is_acked_survives",
        "--nocapture",
    ];
    let title = format!("crash the journal under the seeds {seeds}");
    let mut command = cargo(&words);
    step::run(&title, command.env("TELPHER_CRASH_SEEDS", seeds), limit)
}

/// The range of seeds that `--seeds N` or `--seed S` means to a task.
pub(crate) fn seeds(task: &str, args: &[String]) -> Result<String> {
    let number = |text: &String| text.parse::<u64>().with_context(|| format!("`{text}`"));
    match args {
        [flag, count] if flag == "--seeds" => Ok(format!("0..{}", number(count)?)),
        [flag, seed] if flag == "--seed" => {
            number(seed).map(|seed| format!("{seed}..{}", seed + 1))
        }
        _ => bail!("usage: cargo xtask {task} [--seeds N | --seed S]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range() {
        let range = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|&arg| arg.into()).collect();
            seeds("crash", &args)
        };
        assert_eq!(range(&["--seeds", "5"]).unwrap(), "0..5");
        assert_eq!(range(&["--seed", "5"]).unwrap(), "5..6");
        assert!(range(&["--seed", "x"]).is_err());
        assert!(range(&["5"]).is_err());
    }
}
