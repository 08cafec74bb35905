//! Completion of a tool's incomplete JSON input.
//!
//! This gives the same value as `parsePartialJson` of the AI SDK (`fix-json.ts` and
//! `parse-partial-json.ts` of `vercel/ai`), which shows an input while it is streamed.

use serde_json::value::RawValue;

/// Returns the JSON value that `text` is or begins; `None` if it begins none.
pub(super) fn partial_value(text: &str) -> Option<String> {
    let value = whole(text).or_else(|| whole(&completed(text)))?;
    (json::depth(value.as_bytes()) < json::DEPTH_MAX - 1).then_some(value)
}

fn whole(text: &str) -> Option<String> {
    let value = serde_json::from_str::<&RawValue>(text).ok()?;
    Some(value.get().to_owned())
}

/// The syntax at the present position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Root,
    Finish,
    String,
    Escape,
    /// In `\u`, after this number of digits.
    UnicodeEscape(u8),
    /// In a literal that begins at this byte.
    Literal(usize),
    Number,
    ObjectStart,
    ObjectKey,
    ObjectAfterKey,
    ObjectBeforeValue,
    ObjectAfterValue,
    ObjectAfterComma,
    ArrayStart,
    ArrayAfterValue,
    ArrayAfterComma,
}

struct Scanner {
    stack: Vec<State>,
    /// The end of the longest prefix that can be completed.
    valid_end: usize,
}

/// Completes the longest possible prefix of `text`.
fn completed(text: &str) -> String {
    let mut scanner = Scanner {
        stack: vec![State::Root],
        valid_end: 0,
    };
    for (at, letter) in text.char_indices() {
        scanner.read(text, at, letter);
    }
    let mut result = text[..scanner.valid_end].to_owned();
    for state in scanner.stack.iter().rev() {
        match state {
            State::String => result.push('"'),
            State::ObjectKey
            | State::ObjectAfterKey
            | State::ObjectAfterComma
            | State::ObjectStart
            | State::ObjectBeforeValue
            | State::ObjectAfterValue => result.push('}'),
            State::ArrayStart | State::ArrayAfterComma | State::ArrayAfterValue => result.push(']'),
            State::Literal(since) => {
                let begun = &text[*since..];
                let literal = LITERALS.iter().find_map(|it| it.strip_prefix(begun));
                result.push_str(literal.unwrap_or_default());
            }
            _ => {}
        }
    }
    result
}

const LITERALS: [&str; 3] = ["true", "false", "null"];

impl Scanner {
    fn read(&mut self, text: &str, at: usize, letter: char) {
        let end = at + letter.len_utf8();
        match self.top() {
            State::Root => self.begin_value(at, letter, State::Finish),
            State::Finish => {}
            State::ObjectStart => match letter {
                '"' => self.replace(State::ObjectKey),
                '}' => self.close(end),
                _ => {}
            },
            State::ObjectAfterComma if letter == '"' => self.replace(State::ObjectKey),
            State::ObjectKey if letter == '"' => self.replace(State::ObjectAfterKey),
            State::ObjectAfterKey if letter == ':' => self.replace(State::ObjectBeforeValue),
            State::ObjectAfterComma | State::ObjectKey | State::ObjectAfterKey => {}
            State::ObjectBeforeValue => self.begin_value(at, letter, State::ObjectAfterValue),
            State::ObjectAfterValue => self.after_object_value(end, letter),
            State::String => match letter {
                '"' => self.close(end),
                '\\' => self.stack.push(State::Escape),
                _ => self.valid_end = end,
            },
            State::ArrayStart => match letter {
                ']' => self.close(end),
                _ => self.begin_value(at, letter, State::ArrayAfterValue),
            },
            State::ArrayAfterValue => match letter {
                ',' => self.replace(State::ArrayAfterComma),
                ']' => self.close(end),
                _ => self.valid_end = end,
            },
            State::ArrayAfterComma => self.begin_value(at, letter, State::ArrayAfterValue),
            State::Escape if letter == 'u' => self.replace(State::UnicodeEscape(0)),
            State::Escape => self.close(end),
            State::UnicodeEscape(digits) if letter.is_ascii_hexdigit() => match digits {
                3 => self.close(end),
                digits => self.replace(State::UnicodeEscape(digits + 1)),
            },
            State::UnicodeEscape(_) => {}
            State::Number => self.in_number(end, letter),
            State::Literal(since) => {
                let begun = &text[since..end];
                if LITERALS.iter().any(|literal| literal.starts_with(begun)) {
                    self.valid_end = end;
                } else {
                    self.stack.pop();
                    self.after_value(end, letter);
                }
            }
        }
    }

    fn top(&self) -> State {
        self.stack.last().copied().unwrap_or(State::Finish)
    }

    fn replace(&mut self, state: State) {
        self.stack.pop();
        self.stack.push(state);
    }

    fn close(&mut self, end: usize) {
        self.valid_end = end;
        self.stack.pop();
    }

    fn begin_value(&mut self, at: usize, letter: char, after: State) {
        let state = match letter {
            '"' => State::String,
            'f' | 't' | 'n' => State::Literal(at),
            '-' | '0'..='9' => State::Number,
            '{' => State::ObjectStart,
            '[' => State::ArrayStart,
            _ => return,
        };
        if letter != '-' {
            self.valid_end = at + 1;
        }
        self.replace(after);
        self.stack.push(state);
    }

    fn after_value(&mut self, end: usize, letter: char) {
        match self.top() {
            State::ObjectAfterValue => self.after_object_value(end, letter),
            State::ArrayAfterValue => self.after_array_value(end, letter),
            _ => {}
        }
    }

    fn after_object_value(&mut self, end: usize, letter: char) {
        match letter {
            ',' => self.replace(State::ObjectAfterComma),
            '}' => self.close(end),
            _ => {}
        }
    }

    fn after_array_value(&mut self, end: usize, letter: char) {
        match letter {
            ',' => self.replace(State::ArrayAfterComma),
            ']' => self.close(end),
            _ => {}
        }
    }

    fn in_number(&mut self, end: usize, letter: char) {
        match letter {
            '0'..='9' => self.valid_end = end,
            'e' | 'E' | '-' | '.' => {}
            ',' => {
                self.stack.pop();
                self.after_value(end, letter);
            }
            '}' => {
                self.stack.pop();
                if self.top() == State::ObjectAfterValue {
                    self.after_object_value(end, letter);
                }
            }
            ']' => {
                self.stack.pop();
                if self.top() == State::ArrayAfterValue {
                    self.after_array_value(end, letter);
                }
            }
            _ => drop(self.stack.pop()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_json_is_completed() {
        for (text, expected) in [
            ("", None),
            ("{", Some("{}")),
            (r#"{"a"#, Some("{}")),
            (r#"{"a":"#, Some("{}")),
            (r#"{"a":"x"#, Some(r#"{"a":"x"}"#)),
            (r#"{"a":"x\"#, Some(r#"{"a":"x"}"#)),
            (r#"{"a":"x\u00e"#, Some(r#"{"a":"x"}"#)),
            (r#"{"a":[1,2,{"b":tr"#, Some(r#"{"a":[1,2,{"b":true}]}"#)),
            (r#"{"a":1.5e"#, Some(r#"{"a":1.5}"#)),
            (r#"{"a":-"#, Some("{}")),
            (r#"{"a":1,"#, Some(r#"{"a":1}"#)),
            ("nul", Some("null")),
            ("\"é", Some("\"é\"")),
            ("x", None),
            (" {} ", Some("{}")),
        ] {
            assert_eq!(partial_value(text).as_deref(), expected, "{text}");
        }
    }
}
