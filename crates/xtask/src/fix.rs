//! `cargo xtask fix`: automatic fixes.

use std::time::Duration;

use anyhow::Result;

use crate::step::expect_none;
use crate::step::{self, cargo};

const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Applies the suggestions of the lints, then formats.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let lints = [
        "clippy",
        "--fix",
        "--workspace",
        "--all-targets",
        "--allow-dirty",
        "--allow-staged",
    ];
    step::run("lints", &mut cargo(&lints), LIMIT)?;
    step::run("format", &mut cargo(&["fmt", "--all"]), LIMIT)
}
