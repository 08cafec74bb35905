//! The settings of a webhook in an [`super::AgentState`]: its address and the content of its calls.
//!
//! ```text
//! version u8 (1) | target u8 (1 a URL, 2 a name) | target text16 | secret text16
//! | timeout_ms u64 | answer_ms u64 | headers u16 × (name text16 | value text16) | policy
//! ```

use super::Malformed;
use super::bytes::{FieldReader, Put};
use super::policy;
use crate::context::Policy;

const VERSION: u8 = 1;
const URL: u8 = 1;
const NAME: u8 = 2;

/// The settings of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The address.
    pub target: WebhookTarget,
    /// The secret that signs calls; empty for unsigned calls.
    pub secret: String,
    /// Maximum wait for the beginning of an answer and for each piece of it, in milliseconds.
    pub timeout_ms: u64,
    /// Maximum time for an answer that the agent promised to send later, in milliseconds.
    pub answer_ms: u64,
    /// Additional HTTP headers of each call: names and values.
    pub headers: Vec<(String, String)>,
    /// The policy of the windows sent to it; `None` for the conversation's own policy.
    pub context: Option<Policy>,
}

/// The address of a webhook; see [`WebhookSettings`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookTarget {
    /// An HTTP URL.
    Url(String),
    /// The name of an RPC responder.
    Name(String),
}

impl WebhookSettings {
    /// Appends the settings.
    ///
    /// # Panics
    /// If a text is longer than 65,535 bytes; the limits are far below that.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        let (kind, target) = match &self.target {
            WebhookTarget::Url(url) => (URL, url),
            WebhookTarget::Name(name) => (NAME, name),
        };
        out.push(kind);
        out.text16(target);
        out.text16(&self.secret);
        out.u64(self.timeout_ms);
        out.u64(self.answer_ms);
        let count = u16::try_from(self.headers.len()).expect("few headers were let in");
        out.extend_from_slice(&count.to_le_bytes());
        for (name, value) in &self.headers {
            out.text16(name);
            out.text16(value);
        }
        out.push(u8::from(self.context.is_some()));
        if let Some(context) = &self.context {
            policy::encode(context, out);
        }
    }

    /// Decodes settings.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "settings of an agent");
        if rest.u8()? != VERSION {
            return Err(rest.malformed());
        }
        let kind = rest.u8()?;
        let target = rest.text16()?.to_owned();
        let settings = Self {
            target: match kind {
                URL => WebhookTarget::Url(target),
                NAME => WebhookTarget::Name(target),
                _ => return Err(rest.malformed()),
            },
            secret: rest.text16()?.to_owned(),
            timeout_ms: rest.u64()?,
            answer_ms: rest.u64()?,
            headers: (0..rest.u16()?)
                .map(|_| Ok((rest.text16()?.to_owned(), rest.text16()?.to_owned())))
                .collect::<Result<_, Malformed>>()?,
            context: match rest.u8()? {
                0 => None,
                1 => Some(policy::decode(&mut rest)?),
                _ => return Err(rest.malformed()),
            },
        };
        rest.end()?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> WebhookSettings {
        WebhookSettings {
            target: WebhookTarget::Url("http://a/".to_owned()),
            secret: "s".to_owned(),
            timeout_ms: 258,
            answer_ms: 3,
            headers: vec![("x".to_owned(), "y".to_owned())],
            context: None,
        }
    }

    /// Published.
    #[test]
    fn the_layout_never_changes() {
        let mut bytes = Vec::new();
        settings().encode(&mut bytes);
        let expected = b"\x01\x01\x09\0http://a/\x01\0s\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\
                         \x01\0\x01\0x\x01\0y\0";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn webhook_settings_round_trip_and_truncated_bytes_are_refused() {
        let all = [
            settings(),
            WebhookSettings {
                target: WebhookTarget::Name("a/b/c".to_owned()),
                headers: Vec::new(),
                context: Some(Policy::default()),
                ..settings()
            },
        ];
        for settings in all {
            let mut bytes = Vec::new();
            settings.encode(&mut bytes);
            assert_eq!(WebhookSettings::decode(&bytes), Ok(settings));
            for end in 0..bytes.len() {
                assert!(WebhookSettings::decode(&bytes[..end]).is_err(), "{end}");
            }
            bytes.push(0);
            assert!(WebhookSettings::decode(&bytes).is_err());
        }
    }
}
