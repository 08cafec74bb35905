//! Pages of documentation and help.

use super::text::{self, Alarm};

const WORD: &str = "vague word";
const LENGTH: &str = "long line";

/// Characters of a line in `docs/`.
const WIDTH_MAX: usize = 100;

/// Alarms of a page; the length of lines is checked for those in `docs/`.
pub(super) fn alarms(name: &str, source: &str) -> Vec<Alarm> {
    let mut alarms = words(source);
    if name.starts_with("docs/") {
        alarms.extend(long_lines(source));
    }
    alarms
}

/// Alarms of the help of a command.
pub(super) fn help_alarms(source: &str) -> Vec<Alarm> {
    words(source)
}

fn words(source: &str) -> Vec<Alarm> {
    let prose = prose(source);
    let vague = prose.filter_map(|(line, text)| {
        // Names in code spans are not prose.
        let outside: String = text.split('`').step_by(2).collect();
        text::vague_word(&outside).map(|word| Alarm {
            rule: WORD,
            line,
            text: format!("`{word}` in: {}", text.trim()),
        })
    });
    vague.collect()
}

fn long_lines(source: &str) -> Vec<Alarm> {
    let long = prose(source).filter(|(_, text)| {
        let is_table = text.trim_start().starts_with('|');
        let is_link = text.contains("](") || text.contains("://");
        !is_table && !is_link && text.chars().count() > WIDTH_MAX
    });
    long.map(|(line, text)| Alarm {
        rule: LENGTH,
        line,
        text: text.chars().take(60).collect(),
    })
    .collect()
}

/// Lines outside code blocks, numbered from 1.
fn prose(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    let lines = source.lines().enumerate();
    lines.filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((at + 1, line))
    })
}
