//! Subjects of commits.

use std::path::Path;
use std::process::Command;

use super::text::Alarm;

const RULE: &str = "long commit subject";

/// Characters of a subject.
const SUBJECT_MAX: usize = 72;

/// Commits after this one are checked.
pub(super) const BASE: &str = "283c06223b3c80bacabe68d5b926256feaf28e39";

/// Alarms of the history. A tree without git, or without that commit in its history, has none.
pub(super) fn alarms(root: &Path) -> Vec<Alarm> {
    let range = format!("{BASE}..HEAD");
    let log = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["log", "--no-merges", "--format=%h %s", &range])
        .output();
    match log {
        Ok(log) if log.status.success() => subjects(&String::from_utf8_lossy(&log.stdout)),
        _ => Vec::new(),
    }
}

/// Alarms of lines of an abbreviated id and a subject.
pub(super) fn subjects(log: &str) -> Vec<Alarm> {
    let lines = log
        .lines()
        .filter_map(|line| Some((line, line.split_once(' ')?.1)));
    let long = lines.filter(|(_, subject)| subject.chars().count() > SUBJECT_MAX);
    long.map(|(line, _)| Alarm {
        rule: RULE,
        line: 0,
        text: line.to_owned(),
    })
    .collect()
}
