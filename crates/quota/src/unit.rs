//! Units of limits. A unit is identified by its name alone, so that versions cannot disagree on
//! numbers.

use std::fmt;

/// A unit that limits count: requests, tokens, micro-dollars. The name has up to 23 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit([u8; SIZE]);

const SIZE: usize = 24;

/// A text that is no unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid unit `{text}`: use 1 to 23 characters of a-z, 0-9 and _")]
pub struct UnitError {
    /// The text, cut to 24 characters.
    pub text: String,
}

impl Unit {
    /// Number of takes.
    pub const REQUESTS: Self = Self::known("requests");
    /// Tokens of a language model.
    pub const TOKENS: Self = Self::known("tokens");
    /// Millionths of a dollar.
    pub const USD_MICROS: Self = Self::known("usd_micros");
    /// Number of bytes.
    pub const BYTES: Self = Self::known("bytes");
    /// Operations in progress at the same time.
    pub const CONCURRENCY: Self = Self::known("concurrency");
    /// Messages sent through a node, counted by its listeners.
    pub const SENDS: Self = Self::known("sends");
    /// Unanswered calls through a node, counted by its listeners.
    pub const REQUESTS_IN_FLIGHT: Self = Self::known("requests_in_flight");
    /// Bytes appended through a node, counted by its listeners.
    pub const APPENDED_BYTES: Self = Self::known("appended_bytes");

    const fn known(name: &str) -> Self {
        let mut bytes = [0; SIZE];
        let name = name.as_bytes();
        let mut index = 0;
        while index < name.len() {
            bytes[index] = name[index];
            index += 1;
        }
        Self(bytes)
    }

    /// Parses a unit.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let is_valid =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        match (1..SIZE).contains(&text.len()) && text.bytes().all(is_valid) {
            true => Ok(Self::known(text)),
            false => Err(UnitError {
                text: text.chars().take(SIZE).collect(),
            }),
        }
    }

    /// Returns whether the unit is predefined, and so known without a limit that counts it.
    pub(crate) fn is_known(&self) -> bool {
        let known = [
            Self::REQUESTS,
            Self::TOKENS,
            Self::USD_MICROS,
            Self::BYTES,
            Self::CONCURRENCY,
            Self::SENDS,
            Self::REQUESTS_IN_FLIGHT,
            Self::APPENDED_BYTES,
        ];
        known.contains(self)
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(SIZE);
        std::str::from_utf8(&self.0[..length]).unwrap_or_default()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unit({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_parsed_from_valid_names_only() {
        assert_eq!(Unit::parse("requests"), Ok(Unit::REQUESTS));
        assert_eq!(Unit::REQUESTS_IN_FLIGHT.as_str(), "requests_in_flight");
        assert_eq!(Unit::parse("gpu_ms").unwrap().as_str(), "gpu_ms");
        for text in ["", "Requests", "a b", "a-b", "x23456789012345678901234"] {
            assert!(Unit::parse(text).is_err(), "{text}");
        }
    }
}
