//! Parsing of takes in the compatibility API.

use std::borrow::Cow;
use std::fmt::Write;

use quota::AMOUNT_MAX;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A parsed take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) subject: String,
    pub(super) tokens: u64,
}

/// An error in a take.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    #[error("The body is not valid JSON")]
    Malformed,
    #[error("agentId is required and must be a string")]
    Agent,
    #[error("agentId is too long")]
    AgentTooLong,
    #[error("tokens must be a positive number")]
    Tokens,
    #[error("tokens must be a whole number")]
    Fractional,
    #[error("tokens exceeds capacity ({capacity})")]
    AboveCapacity { capacity: u64 },
    #[error("Failed to decode param '{0}'")]
    Encoding(String),
    #[error("{0}")]
    Refused(String),
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default, rename = "agentId")]
    agent_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "some")]
    tokens: Option<&'a RawValue>,
}

/// Distinguishes `null`, which is a value, from an absent field.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Ask {
    /// Parses the body. Other fields are ignored, as in the original.
    pub(super) fn read(body: &[u8]) -> Result<Self, Wrong> {
        let is_object = body.trim_ascii_start().first() == Some(&b'{');
        if !is_object {
            // Any other JSON value has no agent. An empty body counts as an empty object.
            let is_json = body.is_empty() || serde_json::from_slice::<&RawValue>(body).is_ok();
            return Err(if is_json {
                Wrong::Agent
            } else {
                Wrong::Malformed
            });
        }
        let document: Document<'_> = serde_json::from_slice(body).map_err(|_| Wrong::Malformed)?;
        let agent = document.agent_id.map_or("", RawValue::get);
        let agent = string(agent).filter(|agent| !agent.is_empty());
        let agent = agent.ok_or(Wrong::Agent)?;
        let tokens = document
            .tokens
            .map_or(Ok(1), |tokens| count(tokens.get()))?;
        Ok(Self {
            subject: subject_of(&agent),
            tokens,
        })
    }
}

fn string(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    match inside.contains('\\') {
        false => Some(Cow::Borrowed(inside)),
        true => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

/// Returns the subject of an agent. Characters that a name cannot have are percent-encoded, so that
/// different agents are different subjects.
pub(super) fn subject_of(agent: &str) -> String {
    let mut subject = String::with_capacity(16 + agent.len());
    subject.push_str("default/default/");
    let is_escaped = |it: char| it <= ' ' || matches!(it, '/' | '?' | '*' | '%' | '\x7f');
    for character in agent.chars() {
        if is_escaped(character) {
            // Writing to a String does not fail.
            let _ = write!(subject, "%{:02X}", u32::from(character));
        } else {
            subject.push(character);
        }
    }
    subject
}

/// Converts a value as JavaScript's `Number` does, if the result is a positive whole number. Larger
/// numbers than can be counted become [`AMOUNT_MAX`], which exceeds every capacity.
fn count(json: &str) -> Result<u64, Wrong> {
    if let Ok(count) = json.parse::<u64>()
        && count > 0
    {
        return Ok(count.min(AMOUNT_MAX));
    }
    let number = match json {
        "true" => 1.0,
        "false" | "null" => 0.0,
        json => match string(json) {
            Some(text) => text.trim().parse::<f64>().unwrap_or(f64::NAN),
            None => json.parse::<f64>().unwrap_or(f64::NAN),
        },
    };
    match number {
        number if number.is_nan() || number <= 0.0 => Err(Wrong::Tokens),
        number if number >= AMOUNT_MAX as f64 => Ok(AMOUNT_MAX),
        number if number.fract() != 0.0 => Err(Wrong::Fractional),
        number => Ok(number as u64),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Result<u64, Wrong>) {
        assert_eq!(
            Ask::read(body.as_bytes()).map(|ask| ask.tokens),
            expected,
            "{body}"
        );
    }

    #[test]
    fn tokens_are_read_as_javascript_does() {
        let of = |tokens: &str| format!(r#"{{"agentId":"a","tokens":{tokens}}}"#);
        check(r#"{"agentId":"a"}"#, Ok(1));
        for (tokens, count) in [
            ("5", 5),
            ("\"5\"", 5),
            ("true", 1),
            ("2.0", 2),
            ("1e2", 100),
        ] {
            check(&of(tokens), Ok(count));
        }
        for tokens in [
            "0", "-1", "null", "false", "\"x\"", "\"\"", "[]", "{}", "-1e300",
        ] {
            check(&of(tokens), Err(Wrong::Tokens));
        }
        check(&of("1.5"), Err(Wrong::Fractional));
        for tokens in ["1e300", "99999999999999999999", "\"Infinity\"", "1e15"] {
            check(&of(tokens), Ok(AMOUNT_MAX));
        }
    }

    #[test]
    fn an_agent_id_must_be_a_non_empty_string() {
        for body in [
            "",
            "[]",
            "7",
            "{}",
            r#"{"agentId":7}"#,
            r#"{"agentId":""}"#,
            r#"{"agentId":null}"#,
        ] {
            check(body, Err(Wrong::Agent));
        }
        for body in [
            "{",
            "x",
            r#"{"agentId":"a"} x"#,
            r#"{"agentId":"\x"}"#,
            "{\"agentId\":\"\u{1}\"}",
        ] {
            let is_wrong = matches!(
                Ask::read(body.as_bytes()),
                Err(Wrong::Malformed | Wrong::Agent)
            );
            assert!(is_wrong, "{body}");
        }
        check("{\"agentId\":\"a\\u0041\",\"x\":[{}]}", Ok(1));
        assert_eq!(
            subject_of("a b/c?d*e%"),
            "default/default/a%20b%2Fc%3Fd%2Ae%25"
        );
    }

    proptest! {
        #[test]
        fn no_two_agents_are_the_same_subject(one in "[ -~]{1,6}", other in "[ -~]{1,6}") {
            prop_assert_eq!(one == other, subject_of(&one) == subject_of(&other));
            prop_assert!(quota::Subject::new(&subject_of(&one), "").is_ok());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Ask::read(&bytes);
        }
    }
}
