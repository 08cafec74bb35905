//! `cargo xtask openapi`: schemathesis asks a node what its document says that may be asked.
//!
//! The same as `cargo xtask compat openapi`.

use anyhow::Result;

use crate::{compat, expect_none};

/// Runs schemathesis.
///
/// # Errors
/// When it cannot be fetched, or finds an answer that is not as the document has it.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    compat::run(&["openapi".to_owned()])
}
