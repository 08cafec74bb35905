//! `cargo xtask language`: alarms for prose that readers stumble over.
//!
//! Each rule is a search for a pattern, not a judgement: text that passes can still be bad. A file
//! that an alarm fires in is listed with its line, the rule and the text. The rules:
//!
//! | rule | applies to |
//! |---|---|
//! | vague words ("whoever", "whatever", "somebody") | `*.md` of the root and `docs/`, help, errors, hints |
//! | vague openings ("What", "Who", "Those", "The same") | doc comments of modules and `pub` items |
//! | vague type names | `struct`, `enum`, `type` and `trait` in `crates/*/src` |
//! | form of errors: no full stop at the end, no capital at the beginning | `#[error("…")]` |
//! | length: at most 100 characters | `docs/`, outside tables, code and links |
//! | length of commit subjects: at most 72 characters | commits after [`commits::BASE`] |
//!
//! Any alarm fails the check.

mod comments;
mod commits;
mod documents;
mod errors;
mod names;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use text::Alarm;

use crate::step::{self, expect_none};
use crate::tree;

/// Parts of paths of files that must contain such texts: the rules themselves, and the messages of the
/// Express server that the quota listener stands in for.
const EXEMPT: [&str; 2] = ["/xtask/src/language/", "/http-quotas/src/compat/"];

/// Checks the whole tree; writes nothing.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    step::heading("language");
    let root = tree::root()?;
    let mut lines = Vec::new();
    for path in files(root)? {
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).with_context(|| name.clone())?;
        let found = alarms(&name, &source);
        lines.extend(found.iter().map(|alarm| {
            let Alarm { line, rule, text } = alarm;
            format!("{name}:{line}: {rule}: {text}")
        }));
    }
    let subjects = commits::alarms(root);
    lines.extend(
        subjects
            .iter()
            .map(|alarm| format!("{}: {}", alarm.rule, alarm.text)),
    );
    match lines.len() {
        0 => Ok(()),
        count => bail!("{}\n{count} alarms", lines.join("\n")),
    }
}

/// All alarms of one file.
fn alarms(name: &str, source: &str) -> Vec<Alarm> {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("md") => documents::alarms(name, source),
        Some("snap") => documents::help_alarms(source),
        Some("rs") => [
            comments::alarms(source),
            names::alarms(source),
            errors::alarms(source),
        ]
        .concat(),
        _ => Vec::new(),
    }
}

/// Files that rules apply to, sorted.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
    files.extend(tree::files(&root.join("docs"))?);
    for folder in tree::crates(root)? {
        files.extend(tree::files(&folder.join("src"))?);
    }
    files.retain(|path| {
        let name = path.to_string_lossy();
        let is_exempt = EXEMPT.iter().any(|part| name.contains(part));
        let is_help = name.ends_with(".snap") && name.contains("__help-");
        !tree::is_tests(root, path)
            && !is_exempt
            && (is_help || name.ends_with(".md") || name.ends_with(".rs"))
    });
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
