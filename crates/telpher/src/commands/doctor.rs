//! `telpher doctor`: what a person checks first when a node does not do what it should.
//!
//! Every check is a line: ok, warn or fail, with what was found and what to do about it. Nothing
//! is repaired, and nothing is left behind.

mod directory;
mod doors;
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
  telpher doctor                          the node that `telpher serve` would start here
  telpher doctor --data /var/lib/telpher  one with its data in a place of its own
  telpher doctor --json                   for programs

The sync check writes 8 MiB next to the data, syncs small writes for a second, and removes the file: its \
p50 is the least that an acknowledged write takes.

Exit status: 0 if nothing fails, warnings included, 1 if something does.";

/// Check what a node needs: configuration, directory, disk, ports, limits
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    data: DataArgs,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// What one check found.
#[derive(Debug)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    /// In a few words.
    detail: String,
    hints: Vec<String>,
    /// The same in numbers, where there are any.
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

    /// One finding for each error of a failure.
    fn of_failure(check: &'static str, failure: Failure) -> Vec<Self> {
        let told = failure.errors.into_iter();
        told.map(|told| Self {
            hints: told.hints,
            ..Self::new(check, Verdict::Fail, told.message)
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
            Err(Failure::new(Exit::Failed, message).hint("each says what to do about it"))
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
    findings.extend(doors::check(config, in_use));
    findings.push(doors::check_descriptors(&loaded));
    findings
}

fn count(findings: &[Finding], verdict: Verdict) -> usize {
    findings.iter().filter(|one| one.verdict == verdict).count()
}

/// A line for each check, and under it what to do.
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

/// Bytes as a person reads them.
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
    fn a_finding_is_a_line_with_what_to_do_under_it() {
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
    fn sizes_have_the_unit_that_fits() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
