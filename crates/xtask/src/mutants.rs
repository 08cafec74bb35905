//! `cargo xtask mutants`: mutation tests. The code is broken on purpose, one way at a time, and the
//! proofs must fail.
//!
//! A proof that has never failed proves little. Each mutant is a copy of the crate with a few words
//! changed, in a workspace of its own below `target`; the working tree is not changed.

mod copy;
mod table;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::copy::CrateCopy;
use self::table::{Mutant, Subject};
use crate::step::{self, cargo};

/// Crash seeds: enough to catch every mutant, and few enough for every commit.
const SEEDS: &str = "0..200";

const BUILD_LIMIT: Duration = Duration::from_secs(10 * 60);
const PROOF_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Tests all mutants, or the named ones.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mutants = chosen(args)?;
    for mutants in mutants.chunk_by(|one, next| std::ptr::eq(one.subject, next.subject)) {
        if let Some(first) = mutants.first() {
            attempt_all(first.subject, mutants)?;
        }
    }
    eprintln!("\n   all {} mutants were caught", mutants.len());
    Ok(())
}

/// Tests the mutants of one crate, whose proofs must pass without a change.
fn attempt_all(subject: &'static Subject, mutants: &[&Mutant]) -> Result<()> {
    let copy = CrateCopy::make(subject)?;
    for mutant in mutants {
        copy.check(mutant)?;
    }
    let mut build = proofs(&copy, subject, &["--no-run"])?;
    let title = format!("build `{}` as it is", subject.folder);
    step::run(&title, &mut build, BUILD_LIMIT)?;
    let mut used: Vec<&str> = mutants.iter().map(|mutant| mutant.proof).collect();
    used.sort_unstable();
    used.dedup();
    for proof in used {
        let title = format!("as it is: {proof}");
        step::run(&title, &mut quiet(&copy, subject, proof)?, PROOF_LIMIT)?;
    }
    for mutant in mutants {
        attempt(&copy, mutant)?;
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Mutant>> {
    if let Some(name) = names
        .iter()
        .find(|name| table::all().all(|mutant| mutant.name != name.as_str()))
    {
        let known: Vec<_> = table::all().map(|mutant| mutant.name).collect();
        bail!("there is no mutant `{name}`\nhint: {}", known.join(", "));
    }
    let wanted =
        |mutant: &&Mutant| names.is_empty() || names.iter().any(|name| name == mutant.name);
    Ok(table::all().filter(wanted).collect())
}

/// Builds one mutant and runs its proof. The mutant must compile, and the proof must fail.
fn attempt(copy: &CrateCopy, mutant: &Mutant) -> Result<()> {
    step::heading(&format!("mutant: {}", mutant.name));
    let _broken = copy.mutate(mutant)?;
    let mut build = proofs(copy, mutant.subject, &["--no-run", "--quiet"])?;
    if !step::run_bounded(&mut build, BUILD_LIMIT)?.success() {
        bail!("the mutant `{}` does not compile", mutant.name);
    }
    let status = step::run_bounded(&mut quiet(copy, mutant.subject, mutant.proof)?, PROOF_LIMIT);
    let status = status.with_context(|| format!("the mutant `{}` hangs", mutant.name))?;
    if status.success() {
        bail!(
            "the mutant `{}` was not caught\nhint: {} passed although {}",
            mutant.name,
            mutant.proof,
            mutant.harm
        );
    }
    let log = std::fs::read_to_string(copy.log()).context("the proof's output")?;
    if !log.contains("test result: FAILED") {
        bail!(
            "the proof of the mutant `{}` failed without a failed test: see {}",
            mutant.name,
            copy.log().display()
        );
    }
    eprintln!("   caught by {}: {}", mutant.proof, panic_message(&log));
    Ok(())
}

/// Returns the first panic message of the proof, to show that it is about this mutant.
fn panic_message(log: &str) -> &str {
    let mut lines = log.lines();
    lines.find(|line| line.contains("panicked at"));
    lines.next().unwrap_or_default()
}

fn proofs(copy: &CrateCopy, subject: &Subject, words: &[&str]) -> Result<Command> {
    let mut command = cargo(&["test"]);
    let target = Path::new("target").canonicalize().context("target")?;
    command.args(subject.proofs).args(words);
    command
        .current_dir(copy.root())
        .env("CARGO_TARGET_DIR", target)
        .env("TELPHER_CRASH_SEEDS", SEEDS);
    Ok(command)
}

/// Returns the command of a proof whose output goes to a file, because a mutant's panics are
/// expected.
fn quiet(copy: &CrateCopy, subject: &Subject, proof: &str) -> Result<Command> {
    let log = File::create(copy.log()).context("the proof's output")?;
    let mut command = proofs(copy, subject, &["--quiet", "--", "--exact", proof])?;
    command.stdin(Stdio::null());
    command.stdout(log.try_clone()?).stderr(log);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_message_is_the_first_one() {
        let log = "running 1 test\n\nthread 'a' (1) panicked at b.rs:1:2:\nlost\nnote: `RUST_BACKTRACE`\n";
        assert_eq!(panic_message(log), "lost");
        assert_eq!(panic_message("test result: ok\n"), "");
    }

    #[test]
    fn mutants_are_chosen_by_name() {
        assert_eq!(chosen(&[]).unwrap().len(), table::all().count());
        assert_eq!(
            chosen(&["hint-ignored".into()]).unwrap()[0].name,
            "hint-ignored"
        );
        assert!(chosen(&["nothing".into()]).is_err());
    }
}
