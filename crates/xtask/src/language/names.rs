//! Names of types: nouns of the domain, no bare participles or adverbs.

use super::text::Alarm;

const RULE: &str = "vague type name";

/// Names that say nothing about the thing they name.
const VAGUE: [&str; 30] = [
    "Asked",
    "Away",
    "Begun",
    "Beside",
    "Done",
    "Elsewhere",
    "Ended",
    "Found",
    "Given",
    "Gone",
    "Handed",
    "Heard",
    "Here",
    "Kept",
    "Known",
    "Left",
    "Lost",
    "Means",
    "Meant",
    "Place",
    "Said",
    "Seen",
    "Shown",
    "Standing",
    "Taken",
    "There",
    "Together",
    "Told",
    "Whose",
    "Written",
];

const KEYWORDS: [&str; 4] = ["struct", "enum", "type", "trait"];

pub(super) fn alarms(source: &str) -> Vec<Alarm> {
    let vague = source.lines().enumerate().filter_map(|(at, line)| {
        let code = line.trim_start();
        let item = match code.strip_prefix("pub(") {
            Some(rest) => rest.split_once(')')?.1,
            None => code.strip_prefix("pub ").unwrap_or(code),
        };
        let mut words = item.split_whitespace().skip_while(|word| *word == "unsafe");
        let is_type = KEYWORDS.contains(&words.next()?);
        let name = words
            .next()?
            .split(|it: char| !it.is_alphanumeric())
            .next()?;
        (is_type && VAGUE.contains(&name)).then(|| Alarm {
            rule: RULE,
            line: at + 1,
            text: code.to_owned(),
        })
    });
    vague.collect()
}
