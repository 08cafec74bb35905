//! `cargo xtask openapi`: runs schemathesis with the requests that the node's OpenAPI document
//! allows.
//!
//! Equivalent to `cargo xtask compat openapi`.

use anyhow::Result;

use crate::compat;
use crate::step::expect_none;

/// Runs schemathesis.
///
/// # Errors
/// When it cannot be fetched, or finds a response that differs from the document.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    compat::run(&["openapi".to_owned()])
}
