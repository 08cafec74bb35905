//! `telpher doctor`: checks the environment of a node.
//!
//! Every check is a line: ok, warn or fail, with the finding and a hint. Nothing is repaired, and
//! no files are left behind.

mod settings;

use console::output::{self, Format, Style};
use console::{Environment, Exit, Failure};
use serde_json::{Value, json};
use serve::doctor::{self, Finding, Verdict};

use crate::settings::DataArgs;

const EXAMPLES: &str = "\
Examples:
  telpher doctor                          check the node that `telpher serve` would start here
  telpher doctor --data /var/lib/telpher  check a node with another data directory
  telpher doctor --json                   print JSON

The sync check writes a file of 8 MiB next to the data, syncs small writes for one second, and removes \
the file. Its p50 is the minimum latency of an acknowledged write.

Exit status: 0 if no check fails (warnings are allowed), 1 if a check fails.";

/// Check the environment of a node: configuration, directory, disk, ports, limits
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let findings = examine(&args.data, environment);
    let style = Style::of_stdout(environment.get("NO_COLOR").is_some());
    let failed = count(&findings, Verdict::Fail);
    let checks: Vec<Value> = findings.iter().map(Finding::json).collect();
    let value = json!({ "ok": failed == 0, "checks": checks });
    output::print(args.format, &value, &text(&findings, style))?;
    match failed {
        0 => Ok(()),
        _ => {
            let message = format!("{failed} of {} checks failed", findings.len());
            Err(Failure::new(Exit::Failed, message).hint("see the hint of each failed check"))
        }
    }
}

fn examine(data: &DataArgs, environment: &Environment) -> Vec<Finding> {
    let (mut findings, loaded) = settings::check(data, environment);
    findings.extend(loaded.iter().flat_map(doctor::check));
    findings
}

fn count(findings: &[Finding], verdict: Verdict) -> usize {
    findings.iter().filter(|one| one.verdict == verdict).count()
}

/// Formats a line for each check, followed by its hints.
fn text(findings: &[Finding], style: Style) -> String {
    let width = findings
        .iter()
        .map(|one| one.check.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for one in findings {
        let name = format!("{:<4}", one.verdict.name());
        let verdict = style.paint(one.verdict.colour(), &name);
        text.push_str(&format!(
            "{verdict}  {:width$}  {}\n",
            one.check, one.detail
        ));
        for hint in &one.hints {
            let hint_word = style.paint(output::CYAN, "hint:");
            text.push_str(&format!("      {hint_word} {hint}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line_followed_by_its_hints() {
        let findings = [
            Finding::ok("ports", "free"),
            Finding::fail("disk", "full", "make room").hint("or move"),
        ];
        assert_eq!(
            text(&findings, Style::Plain),
            "ok    ports  free\nfail  disk   full\n      hint: make room\n      hint: or move\n"
        );
        assert_eq!(count(&findings, Verdict::Fail), 1);
        assert_eq!(findings[1].json()["hints"][1], "or move");
    }
}
