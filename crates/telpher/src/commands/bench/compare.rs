//! `telpher bench compare`: compares two results of one benchmark.

use std::path::PathBuf;

use bench::compare::{self, Judgement, Outcome, Rule};
use bench::report;
use console::output::print_text;
use console::{Exit, Failure};

use super::outcome::read;

const EXAMPLES: &str = "\
A rule fails if the mean over the runs changed by more than the rule allows and the change is \
statistically significant (Welch's test). A larger change that is not significant is unclear: use more \
repeats.

Examples:
  telpher bench compare old.json new.json
  telpher bench compare old.json new.json --fail-if 'p99 > +10%' --fail-if 'throughput < -5%'
  telpher bench compare old.json new.json --fail-if 'node_cpu_us_per_message > +5%' --strict

Exit status: 0 if no rule failed, 1 if a rule failed";

/// Compare two results of the same benchmark
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The results.json of the baseline
    old: PathBuf,

    /// The results.json to judge
    new: PathBuf,

    /// Change that is a failure: METRIC, > or <, and percent
    #[arg(long, value_name = "RULE")]
    fail_if: Vec<Rule>,

    /// Fail also if a rule is unclear
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let changes = compare::changes(&old, &new);
    if changes.is_empty() {
        return Err(
            Failure::new(Exit::NotFound, "the two results have no case in common")
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
            let message = format!("{count} of {} rules failed", judgements.len());
            Err(Failure::new(Exit::Failed, message)
                .hint("repeat both runs on an idle machine to confirm it"))
        }
    }
}
