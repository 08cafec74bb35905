//! Check for tokens that may use every name.

use std::path::Path;
use std::sync::Arc;

use access::tokens::{Role, Token, TokenStore};
use platform::RealDisk;

use super::finding::Finding;

const CHECK: &str = "tokens";

/// Returns no finding if there are no tokens, or if they cannot be read, which another check
/// reports.
pub(super) fn check(dir: &Path) -> Vec<Finding> {
    let Ok(store) = TokenStore::open(Arc::new(RealDisk), dir) else {
        return Vec::new();
    };
    if !store.required() {
        return Vec::new();
    }
    let is_free = |token: &&Token| token.role == Role::Agent && token.is_free();
    let (earlier, free): (Vec<_>, Vec<_>) = store
        .list()
        .iter()
        .filter(is_free)
        .partition(|token| token.names.is_none());
    let mut findings = Vec::new();
    if !earlier.is_empty() {
        findings.push(Finding::warn(
            CHECK,
            format!(
                "{} may use every name until the next version of Telpher",
                titles(&earlier)
            ),
            "bind each to its names: telpher token bind NAME --for 'org/namespace/*'",
        ));
    }
    if !free.is_empty() {
        findings.push(Finding::warn(
            CHECK,
            format!(
                "{} may use every name, those of other agents too",
                titles(&free)
            ),
            "bind each to its names, so that limits and halts apply to it: telpher token bind NAME \
             --for 'org/namespace/*'",
        ));
    }
    if findings.is_empty() {
        let count = store.list().len();
        findings.push(Finding::ok(
            CHECK,
            format!("{count}, each bound to its names"),
        ));
    }
    findings
}

fn titles(tokens: &[&Token]) -> String {
    let names: Vec<_> = tokens.iter().map(|it| format!("`{}`", it.name)).collect();
    names.join(", ")
}
