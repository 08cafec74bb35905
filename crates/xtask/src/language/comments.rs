//! Doc comments of modules and `pub` items: their first words.

use super::text::Alarm;

const RULE: &str = "vague opening";

const OPENINGS: [&str; 6] = ["What", "Who", "Whoever", "Those", "The same", "Whatever"];

pub(super) fn alarms(source: &str) -> Vec<Alarm> {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let begins = |at: usize, mark: &str| {
        lines[at].starts_with(mark) && (at == 0 || !lines[at - 1].starts_with(mark))
    };
    let firsts = (0..lines.len()).filter_map(|at| {
        if begins(at, "//!") {
            return Some((at, lines[at].trim_start_matches("//!")));
        }
        if !begins(at, "///") {
            return None;
        }
        let item = lines[at..]
            .iter()
            .find(|line| !line.starts_with("//") && !line.starts_with('#'))?;
        item.starts_with("pub ")
            .then(|| (at, lines[at].trim_start_matches("///")))
    });
    let vague = firsts.filter(|(_, text)| {
        let text = text.trim_start();
        OPENINGS.iter().any(|opening| {
            let rest = text.strip_prefix(opening);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    });
    vague
        .map(|(at, text)| Alarm {
            rule: RULE,
            line: at + 1,
            text: text.trim().to_owned(),
        })
        .collect()
}
