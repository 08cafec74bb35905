//! The findings of checks.

use serde_json::{Value, json};

use console::Failure;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing is wrong.
    Ok,
    /// A node runs, but not as well as it could.
    Warn,
    /// A node does not run, or loses data.
    Fail,
}

/// The finding of a check.
#[derive(Debug)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    /// The result.
    pub verdict: Verdict,
    /// The finding in a few words.
    pub detail: String,
    /// How to mend it.
    pub hints: Vec<String>,
    /// The figures of the finding for JSON, or null.
    pub figures: Value,
}

impl Finding {
    /// Returns a finding without hints.
    pub fn new(check: &'static str, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self {
            check,
            verdict,
            detail: detail.into(),
            hints: Vec::new(),
            figures: Value::Null,
        }
    }

    /// Returns a finding of a check that passes.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, detail)
    }

    /// Returns a finding of a warning, with a hint.
    pub fn warn(check: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(check, Verdict::Warn, detail).hint(hint)
    }

    /// Returns a finding of a check that fails, with a hint.
    pub fn fail(check: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(check, Verdict::Fail, detail).hint(hint)
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets the figures.
    pub fn figures(self, figures: Value) -> Self {
        Self { figures, ..self }
    }

    /// Returns a finding for each error of a failure.
    pub fn of_failure(check: &'static str, failure: Failure) -> Vec<Self> {
        let reports = failure.errors.into_iter();
        reports
            .map(|report| Self {
                hints: report.hints,
                ..Self::new(check, Verdict::Fail, report.message)
            })
            .collect()
    }

    /// Returns the finding as JSON.
    pub fn json(&self) -> Value {
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
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    /// Returns its colour on a terminal, as an SGR sequence.
    pub fn colour(self) -> &'static str {
        match self {
            Self::Ok => "1;32",
            Self::Warn => "1;33",
            Self::Fail => "1;31",
        }
    }
}

/// Formats a size with a binary unit.
pub(super) fn bytes(size: u64) -> String {
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
    fn sizes_are_printed_with_a_suitable_unit() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
