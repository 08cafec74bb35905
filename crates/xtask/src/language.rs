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
//! `language/language.tsv` lists how many alarms of a rule a crate still has. More fail the check;
//! fewer fail it, too, until the list is lowered. So the numbers only go down.

mod comments;
mod commits;
mod documents;
mod errors;
mod names;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use text::Alarm;

use crate::step::{self, expect_none};

/// Alarms that are still there: area, rule and count on each line.
const BACKLOG: &str = include_str!("language/language.tsv");

/// Parts of paths of files that must contain such texts: the rules themselves, and the messages of the
/// Express server that the quota listener stands in for.
const EXEMPT: [&str; 2] = ["/xtask/src/language/", "/http-quotas/src/compat/"];

/// Checks the whole tree; writes nothing.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let lists_all = args == ["--list"];
    if !lists_all {
        expect_none(args)?;
    }
    step::heading("language");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("the workspace is two folders up")?;
    let mut found: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for path in files(root)? {
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).with_context(|| name.clone())?;
        for alarm in alarms(&name, &source) {
            let line = format!("{name}:{}: {}: {}", alarm.line, alarm.rule, alarm.text);
            found
                .entry((area(&name), alarm.rule))
                .or_default()
                .push(line);
        }
    }
    for alarm in commits::alarms(root) {
        let line = format!("{}: {}", alarm.rule, alarm.text);
        found
            .entry(("commits".to_owned(), alarm.rule))
            .or_default()
            .push(line);
    }
    if lists_all {
        found
            .values()
            .flatten()
            .for_each(|line| eprintln!("{line}"));
    }
    match differences(&backlog(BACKLOG)?, &found) {
        None => Ok(()),
        Some(report) => bail!("{report}"),
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

/// The part of the tree that a file's alarms are counted for: a crate, or `documents`.
fn area(name: &str) -> String {
    match name
        .strip_prefix("crates/")
        .and_then(|rest| rest.split_once('/'))
    {
        Some((name, _)) => name.to_owned(),
        None => "documents".to_owned(),
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
    walk(&root.join("docs"), &mut files)?;
    for entry in std::fs::read_dir(root.join("crates"))? {
        walk(&entry?.path().join("src"), &mut files)?;
    }
    files.retain(|path| {
        let name = path.to_string_lossy();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        let is_exempt = EXEMPT.iter().any(|part| name.contains(part));
        let is_help = name.ends_with(".snap") && name.contains("__help-");
        !is_test && !is_exempt && (is_help || name.ends_with(".md") || name.ends_with(".rs"))
    });
    files.sort();
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        match path.is_dir() {
            true => walk(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// Reads lines of area, rule and count, separated by tabs.
fn backlog(text: &str) -> Result<BTreeMap<(String, String), usize>> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let mut fields = line.split('\t');
            let (Some(area), Some(rule), Some(count), None) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                bail!("language.tsv: `{line}` is not area, rule and count");
            };
            Ok(((area.to_owned(), rule.to_owned()), count.parse()?))
        })
        .collect()
}

/// A report of what differs from the backlog; nothing when nothing does.
fn differences(
    backlog: &BTreeMap<(String, String), usize>,
    found: &BTreeMap<(String, &str), Vec<String>>,
) -> Option<String> {
    let mut report = String::new();
    for ((area, rule), lines) in found {
        let allowed = backlog
            .get(&(area.clone(), (*rule).to_owned()))
            .copied()
            .unwrap_or(0);
        if lines.len() > allowed {
            let _ = writeln!(report, "{}", lines.join("\n"));
            let count = lines.len();
            let _ = writeln!(
                report,
                "{area}: {rule}: {count} alarms, {allowed} allowed\n"
            );
        }
    }
    for ((area, rule), allowed) in backlog {
        let alarms = found.iter().find(|((a, r), _)| a == area && r == rule);
        let count = alarms.map_or(0, |(_, lines)| lines.len());
        if count < *allowed {
            let _ = writeln!(
                report,
                "{area}: {rule}: {count} alarms, fewer than the {allowed} in language.tsv: lower it"
            );
        }
    }
    (!report.is_empty()).then_some(report)
}

#[cfg(test)]
mod tests;
