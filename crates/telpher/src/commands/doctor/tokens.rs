//! Tokens whose bearers may use every name.

use std::path::Path;
use std::sync::Arc;

use node::ports::RealDisk;
use node::tokens::{Role, Token, TokenStore};

use super::Finding;

const CHECK: &str = "tokens";

/// Nothing where there are no tokens, or where they cannot be read: another check tells of that.
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
                "{} may use every name until the next version",
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
            "limits and halts bind a token that has narrower names: telpher token bind NAME --for \
             'org/namespace/*'",
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
