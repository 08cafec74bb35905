//! Texts of errors and hints.

use super::text::{self, Alarm};

const FORM: &str = "form of an error";
const WORD: &str = "vague word";

/// Proper names that an error may begin with, beside words in capitals alone.
const PROPER: [&str; 6] = ["Apache", "Kafka", "Linux", "PostgreSQL", "Redis", "Telpher"];

pub(super) fn alarms(source: &str) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    for (at, line) in source.lines().enumerate() {
        let alarm = |rule: &'static str, text: &str| Alarm {
            rule,
            line: at + 1,
            text: text.to_owned(),
        };
        let code = line.trim_start();
        if let Some(rest) = code.strip_prefix("#[error(")
            && let Some(error) = text::literal(rest)
        {
            if error.ends_with('.') || begins_with_capital(error) {
                alarms.push(alarm(FORM, error));
            }
            if let Some(word) = text::vague_word(error) {
                alarms.push(alarm(WORD, &format!("`{word}` in \"{error}\"")));
            }
        } else if !code.starts_with("//")
            && let Some(string) = text::literal(code)
            && let Some(word) = text::vague_word(string)
        {
            alarms.push(alarm(WORD, &format!("`{word}` in \"{string}\"")));
        }
    }
    alarms
}

/// Whether the text begins with a capital letter that belongs to a common word. Acronyms, proper names, names
/// of options and placeholders may.
fn begins_with_capital(text: &str) -> bool {
    let word: String = text.chars().take_while(|it| it.is_alphanumeric()).collect();
    let mut letters = word.chars();
    let is_capitalised = letters.next().is_some_and(char::is_uppercase);
    let is_acronym = word.chars().filter(|it| it.is_uppercase()).count() > 1;
    is_capitalised && !is_acronym && !PROPER.contains(&word.as_str())
}
