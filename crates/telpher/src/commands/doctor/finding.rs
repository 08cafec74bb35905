//! `Finding`: the result of a check.

use serde_json::{Value, json};

use console::Failure;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// The finding of a check.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    /// The finding in a few words.
    pub(super) detail: String,
    pub(super) hints: Vec<String>,
    /// The figures of the finding for JSON, or null.
    pub(super) figures: Value,
}

impl Finding {
    pub(super) fn new(check: &'static str, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self {
            check,
            verdict,
            detail: detail.into(),
            hints: Vec::new(),
            figures: Value::Null,
        }
    }

    pub(super) fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, detail)
    }

    pub(super) fn warn(
        check: &'static str,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::new(check, Verdict::Warn, detail).hint(hint)
    }

    pub(super) fn fail(
        check: &'static str,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::new(check, Verdict::Fail, detail).hint(hint)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(super) fn figures(self, figures: Value) -> Self {
        Self { figures, ..self }
    }

    /// Returns a finding for each error of a failure.
    pub(super) fn of_failure(check: &'static str, failure: Failure) -> Vec<Self> {
        let reports = failure.errors.into_iter();
        reports
            .map(|report| Self {
                hints: report.hints,
                ..Self::new(check, Verdict::Fail, report.message)
            })
            .collect()
    }

    pub(super) fn json(&self) -> Value {
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
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    pub(super) fn colour(self) -> &'static str {
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
