//! What the node logs, to the standard error.

use super::value::{Value, parse_word};

options! {
    /// What the node logs, to the standard error; never a line per message.
    log, "Log";

    /// How a line is written: `text` for people, `json` for programs.
    "log.format" => format: Format = Format::Text;

    /// How much is logged: `off`, `error`, `warn`, `info`, `debug` or `trace`, and per part of
    /// the node after a comma, like `info,edge=debug`.
    "log.level" => level: Levels = Levels("info".to_owned());
}

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

const FORMATS: [(&str, Format); 2] = [("text", Format::Text), ("json", Format::Json)];

/// A level for everything and levels for single parts, as `tracing` filters write them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels(String);

const LEVELS: [(&str, ()); 6] = [
    ("off", ()),
    ("error", ()),
    ("warn", ()),
    ("info", ()),
    ("debug", ()),
    ("trace", ()),
];

impl Levels {
    /// The filter's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Format {
    const FORM: &'static str = "FORMAT";

    fn parse(text: &str) -> Result<Self, String> {
        parse_word(text, &FORMATS)
    }

    fn print(&self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Json => "json".to_owned(),
        }
    }
}

impl Value for Levels {
    const FORM: &'static str = "LEVEL";

    fn parse(text: &str) -> Result<Self, String> {
        for directive in text.split(',') {
            let (target, level) = directive.split_once('=').unwrap_or(("all", directive));
            parse_word(level, &LEVELS)?;
            let known = !target.is_empty()
                && target
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
            if !known {
                return Err(format!(
                    "`{target}` cannot be the name of a part of the node"
                ));
            }
        }
        Ok(Self(text.to_owned()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}
