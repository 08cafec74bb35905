//! Names of types: nouns of the domain, no bare participles or adverbs.

use super::Alarm;

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
        let words = line
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .filter(|word| !word.is_empty());
        let is_code = !line.trim_start().starts_with("//");
        let name = words
            .skip_while(|word| ["pub", "crate", "super", "unsafe", "in"].contains(word))
            .collect::<Vec<_>>();
        let [keyword, name, ..] = name.as_slice() else {
            return None;
        };
        let is_vague = is_code && KEYWORDS.contains(keyword) && VAGUE.contains(name);
        is_vague.then(|| Alarm {
            rule: RULE,
            line: at + 1,
            text: line.trim().to_owned(),
        })
    });
    vague.collect()
}
