//! Types of option values: each is parsed from the same text in every layer, and printed as it.

use std::path::PathBuf;
use std::time::Duration;

use model::{ByteSize, duration};

use super::HostPort;

/// The word that switches an optional value off.
pub(super) const NONE: &str = "none";

/// A type of option values.
pub trait Value: Sized {
    /// The placeholder of the value in help: `SIZE`.
    const FORM: &'static str;

    /// True if TOML writes the value without quotes.
    const BARE: bool = false;

    /// Reads the value; the error is for people and names the text.
    fn parse(text: &str) -> Result<Self, String>;

    /// The text that [`Value::parse`] reads back.
    fn print(&self) -> String;
}

impl Value for u32 {
    const FORM: &'static str = "COUNT";
    const BARE: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| format!("`{text}` is not a whole number from 0 to {}", Self::MAX))
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    const FORM: &'static str = "TEXT";

    fn parse(text: &str) -> Result<Self, String> {
        match text.is_empty() {
            true => Err("the value is empty".to_owned()),
            false => Ok(text.to_owned()),
        }
    }

    fn print(&self) -> String {
        self.clone()
    }
}

impl Value for bool {
    const FORM: &'static str = "BOOL";
    const BARE: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| format!("`{text}` is neither true nor false"))
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    const FORM: &'static str = "PATH";

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Err("the path is empty".to_owned())
        } else {
            Ok(text.into())
        }
    }

    fn print(&self) -> String {
        self.display().to_string()
    }
}

impl Value for ByteSize {
    const FORM: &'static str = "SIZE";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: model::ByteSizeError| error.to_string())
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Value for Duration {
    const FORM: &'static str = "DURATION";

    fn parse(text: &str) -> Result<Self, String> {
        duration::parse(text).map_err(|error| error.to_string())
    }

    fn print(&self) -> String {
        duration::print(*self)
    }
}

impl Value for HostPort {
    const FORM: &'static str = "HOST:PORT";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: super::HostPortError| error.to_string())
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl<T: Value> Value for Option<T> {
    const FORM: &'static str = T::FORM;
    const BARE: bool = false;

    fn parse(text: &str) -> Result<Self, String> {
        if text == NONE {
            Ok(None)
        } else {
            T::parse(text).map(Some)
        }
    }

    fn print(&self) -> String {
        self.as_ref().map_or_else(|| NONE.to_owned(), T::print)
    }
}

/// Checks a value against its range, whose bounds are written like the value.
pub(super) fn check_range<T: Value + PartialOrd>(
    value: &T,
    low: &str,
    high: &str,
) -> Result<(), String> {
    let within = T::parse(low)? <= *value && *value <= T::parse(high)?;
    if within {
        Ok(())
    } else {
        Err(format!("{} is not between {low} and {high}", value.print()))
    }
}

/// Parses one of the listed words.
pub(super) fn parse_word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            Err(format!("`{text}` is not one of {}", known.join(", ")))
        }
    }
}
