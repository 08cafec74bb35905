//! Flags of all cases of a suite.

use super::flag::{Flag, sentence};
use crate::model::Results;

/// Returns the kinds of flags in the results, sorted.
pub(crate) fn kinds(results: &Results) -> Vec<Flag> {
    let mut raised: Vec<_> = results.flags().map(|(_, raised)| raised.flag).collect();
    raised.sort_unstable();
    raised.dedup();
    raised
}

/// Fails if any case is flagged (`--strict`).
///
/// # Errors
/// With every flag raised; the command then ends with exit code 1.
pub fn strict(results: &Results) -> Result<(), FlaggedCases> {
    let flagged: Vec<_> = results
        .cases
        .iter()
        .filter(|result| !result.summary.flags.is_empty())
        .map(|result| format!("{}: {}", result.case.key(), sentence(&result.summary.flags)))
        .collect();
    if flagged.is_empty() {
        Ok(())
    } else {
        Err(FlaggedCases { cases: flagged })
    }
}

/// Error of a strict suite: its flagged cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} of the cases are flagged\n  {}\nhint: run without --strict to accept flagged figures, or raise \
     --duration and --repeats",
    cases.len(), cases.join("\n  ")
)]
pub struct FlaggedCases {
    cases: Vec<String>,
}
