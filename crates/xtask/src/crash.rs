//! `cargo xtask crash`: crash tests of the journal under many seeds, or under one seed again.
//!
//! The tests are built with optimisation, which runs ten times as many of them in a minute, and
//! with all assertions.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::step::{self, cargo};

/// Seeds of `cargo xtask test`.
const SEEDS_SHORT: &str = "0..10000";

/// Default seeds of this task.
const SEEDS_LONG: &str = "0..1000000";

const LIMIT_SHORT: Duration = Duration::from_secs(10 * 60);
const LIMIT_LONG: Duration = Duration::from_secs(12 * 60 * 60);

/// Runs the requested seeds. The first that fails is printed and replays with `--seed`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let seeds = match args {
        [] => SEEDS_LONG.to_owned(),
        args => seeds("crash", args)?,
    };
    crash(&seeds, LIMIT_LONG)
}

/// Runs the seeds for every commit.
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
        "crash::acknowledged_records_survive_a_crash",
        "--nocapture",
    ];
    let title = format!("crash the journal under the seeds {seeds}");
    let mut command = cargo(&words);
    step::run(&title, command.env("TELPHER_CRASH_SEEDS", seeds), limit)
}

/// Parses `--seeds N` or `--seed S` as a range of seeds.
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
