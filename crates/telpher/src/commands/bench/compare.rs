//! `telpher bench compare`.

use std::path::PathBuf;

use bench::compare::{self, Judgement, Outcome, Rule};
use bench::report;

use super::outcome::read;
use crate::failure::{Exit, Failure};
use crate::output::print_text;

const EXAMPLES: &str = "\
A rule fails when the mean over the runs changed by more than it allows and the runs show that it is no \
accident (Welch's test). A change beyond the limit that the runs do not show is unclear: more repeats \
tell.

Examples:
  telpher bench compare old.json new.json
  telpher bench compare old.json new.json --fail-if 'p99 > +10%' --fail-if 'throughput < -5%'
  telpher bench compare old.json new.json --fail-if 'node_cpu_us_per_message > +5%' --strict

Exit status: 0 no rule failed, 1 one did";

/// Compare two results of one suite
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The results.json to compare with
    old: PathBuf,

    /// The results.json that is judged
    new: PathBuf,

    /// A change that is a failure: METRIC, > or <, and percent
    #[arg(long, value_name = "RULE")]
    fail_if: Vec<Rule>,

    /// Fail as well when a rule cannot be decided
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let changes = compare::changes(&old, &new);
    if changes.is_empty() {
        return Err(
            Failure::new(Exit::NotFound, "the results have no case in common")
                .hint("compare two runs of the same command"),
        );
    }
    let judgements = compare::judge(&old, &new, &args.fail_if);
    let mut text = report::changes(&old, &new, &changes).terminal() + "\n";
    for judgement in &judgements {
        text += &format!("{judgement}\n");
    }
    print_text(&text)?;
    let is_failed = |one: &Judgement| match one.outcome {
        Outcome::Pass(_) => false,
        Outcome::Fail(_) => true,
        Outcome::Unclear(_) => args.strict,
    };
    match judgements.iter().filter(|one| is_failed(one)).count() {
        0 => Ok(()),
        count => {
            let message = format!("{count} of {} judgements failed", judgements.len());
            Err(Failure::new(Exit::Failed, message)
                .hint("run both again on a quiet machine before believing it"))
        }
    }
}
