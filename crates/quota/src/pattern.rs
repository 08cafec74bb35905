//! Patterns of limits: the subjects that a limit covers, and the part of a subject that shares one
//! cell.

use crate::subject::{Subject, Tier};

/// `org`, `org/namespace` or `org/namespace/agent`, with `*` for any part. A pattern with the
/// suffix `?run` has one cell per run and does not cover subjects without a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Box<str>,
    tier: Tier,
    is_per_run: bool,
}

/// A text that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid pattern `{text}`: use one to three parts like `acme/*/*`, and append `?run` for a \
     cell per run"
)]
pub struct PatternError {
    /// The text, cut to 80 characters.
    pub text: String,
}

impl Pattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let error = || PatternError {
            text: text.chars().take(80).collect(),
        };
        let (name, is_per_run) = match text.strip_suffix("?run") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let tier = Tier::of(name.split('/').count()).ok_or_else(error)?;
        let is_part = |part: &str| {
            let is_name = (1..=255).contains(&part.len())
                && part
                    .bytes()
                    .all(|byte| byte > b' ' && !b"?*\x7f".contains(&byte));
            part == ANY || is_name
        };
        match name.split('/').all(is_part) {
            true => Ok(Self {
                text: name.into(),
                tier,
                is_per_run,
            }),
            false => Err(error()),
        }
    }

    /// Returns the number of name parts that identify a cell.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Returns whether each run has its own cell.
    pub fn is_per_run(&self) -> bool {
        self.is_per_run
    }

    /// Returns whether the pattern covers the subject.
    pub fn covers(&self, subject: &Subject<'_>) -> bool {
        if self.is_per_run && subject.run().is_empty() {
            return false;
        }
        let mut parts = self.text.split('/').enumerate();
        parts.all(|(index, part)| part == ANY || part == subject.part(index))
    }

    /// Returns whether the pattern has only wildcards. With `?run` it still excludes subjects
    /// without a run.
    pub(crate) fn is_wild(&self) -> bool {
        self.text.bytes().all(|byte| matches!(byte, b'*' | b'/'))
    }

    /// Returns the first part, unless it is `*`.
    pub(crate) fn org(&self) -> Option<&str> {
        self.text.split('/').next().filter(|part| *part != ANY)
    }

    /// Returns whether the limit can have a cell for that prefix.
    pub(crate) fn covers_prefix(&self, name: &str, run: &str) -> bool {
        let mut parts = name.split('/');
        let fits = self.text.split('/').all(|own| {
            let part = parts.next();
            part.is_some_and(|part| own == ANY || own == part)
        });
        fits && parts.next().is_none() && self.is_per_run != run.is_empty()
    }
}

const ANY: &str = "*";

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let run = if self.is_per_run { "?run" } else { "" };
        write!(f, "{}{run}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_subjects_segment_by_segment() {
        let subject = Subject::parse("acme/search/bot").unwrap();
        let in_run = Subject::parse("acme/search/bot?run=1").unwrap();
        for (text, outside, inside) in [
            ("*", true, true),
            ("acme", true, true),
            ("acme/*/bot", true, true),
            ("*/other", false, false),
            ("*/*/*?run", false, true),
        ] {
            let pattern = Pattern::parse(text).unwrap();
            assert_eq!(
                (pattern.covers(&subject), pattern.covers(&in_run)),
                (outside, inside),
                "{text}"
            );
            assert_eq!(Pattern::parse(&pattern.to_string()), Ok(pattern));
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for text in ["", "a/b/c/d", "a//c", "a*", "a b", "?run"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
