//! Options of the log on the standard error.

use super::value::{Value, parse_word};

options! {
    /// The log, on the standard error; it has no line per message.
    log, "Log";

    /// Format of a line: `text` for people, `json` for programs.
    "log.format" => format: Format = Format::Text;

    /// Level of the log: `off`, `error`, `warn`, `info`, `debug` or `trace`. A part of the node can
    /// have a level of its own after a comma, like `info,door=debug`.
    "log.level" => level: Levels = Levels("info".to_owned());
}

/// Format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Readable text.
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
                return Err(format!("`{target}` is not the name of a part of the node"));
            }
        }
        Ok(Self(text.to_owned()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}
