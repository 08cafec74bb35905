//! `telpher doctor`: checks the environment of a node.
//!
//! Every check is a line: ok, warn or fail, with the finding and a hint. Nothing is repaired, and
//! no files are left behind.

mod directory;
mod listeners;
mod mounts;
mod settings;
mod sync;
mod tokens;

use serde_json::{Value, json};

use crate::failure::{Exit, Failure};
use crate::output::{self, Format, Style};
use crate::settings::{DataArgs, Environment};

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

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// The finding of a check.
#[derive(Debug)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    /// The finding in a few words.
    detail: String,
    hints: Vec<String>,
    /// The figures of the finding for JSON, or null.
    figures: Value,
}

impl Finding {
    fn new(check: &'static str, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self {
            check,
            verdict,
            detail: detail.into(),
            hints: Vec::new(),
            figures: Value::Null,
        }
    }

    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, detail)
    }

    fn warn(check: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(check, Verdict::Warn, detail).hint(hint)
    }

    fn fail(check: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(check, Verdict::Fail, detail).hint(hint)
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn figures(self, figures: Value) -> Self {
        Self { figures, ..self }
    }

    /// Returns a finding for each error of a failure.
    fn of_failure(check: &'static str, failure: Failure) -> Vec<Self> {
        let reports = failure.errors.into_iter();
        reports
            .map(|report| Self {
                hints: report.hints,
                ..Self::new(check, Verdict::Fail, report.message)
            })
            .collect()
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "check": self.check,
            "verdict": self.verdict.name(),
            "detail": self.detail,
            "hints": self.hints,
        });
        if !self.figures.is_null() {
            value["figures"] = self.figures.clone();
        }
        value
    }
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Ok => "1;32",
            Self::Warn => "1;33",
            Self::Fail => "1;31",
        }
    }
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
    let Some(loaded) = loaded else {
        return findings;
    };
    let config = &loaded.config;
    let dir = &config.data.dir;
    let (used, in_use) = directory::check_use(dir);
    findings.push(used);
    findings.extend(directory::check(dir));
    findings.extend(tokens::check(dir));
    findings.push(sync::check(&directory::nearest(dir)));
    findings.extend(listeners::check(config, in_use));
    findings.push(listeners::check_descriptors(&loaded));
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

/// Formats a size with a binary unit.
fn bytes(size: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = size as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{size} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
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

    #[test]
    fn sizes_are_printed_with_a_suitable_unit() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
