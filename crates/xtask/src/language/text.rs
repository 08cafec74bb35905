//! Searches in lines of text that several rules share.

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alarm {
    pub(super) rule: &'static str,
    /// From 1; 0 where the alarm is not of a line.
    pub(super) line: usize,
    pub(super) text: String,
}

/// Words without a noun behind them.
const VAGUE: [&str; 3] = ["whoever", "whatever", "somebody"];

/// The first vague word of the text, in any case.
pub(super) fn vague_word(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    words.find_map(|word| VAGUE.into_iter().find(|vague| *vague == word))
}

/// The content of the first string literal that begins in the text, escapes as they are written.
/// Nothing when there is none, or it does not end in the text.
pub(super) fn literal(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('"')?;
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            '"' if !is_escaped => return Some(&rest[..at]),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}
