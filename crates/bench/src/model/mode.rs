//! The areas of the system and the ways of exchanging messages in them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The part of the system a benchmark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// Messages between agents through a node.
    Agent,
    /// Calls.
    Rpc,
    /// Topics over the Kafka protocol.
    Kafka,
    /// Conversations.
    Store,
    /// Quotas.
    Quota,
    /// The journal.
    Journal,
}

impl Area {
    /// The area's name in lines and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Rpc => "rpc",
            Self::Kafka => "kafka",
            Self::Store => "store",
            Self::Quota => "quota",
            Self::Journal => "journal",
        }
    }
}

/// Where a mode's throughput is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedBy {
    /// Completions at the sender over the send window.
    Sender,
    /// Arrivals at the sink over its active window.
    Sink,
}

/// A way of exchanging messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mode {
    /// Stable name: `request-reply`.
    pub name: Cow<'static, str>,
    /// Where its throughput is counted.
    pub counted_by: CountedBy,
    /// Whether the sender waits for answers, which makes latency a result.
    pub answered: bool,
}

impl Mode {
    const SERIAL_NAME: &str = "serial";

    /// Each message is answered before the next leaves; the responder counts.
    pub const REQUEST_REPLY: Self = Self::new("request-reply", CountedBy::Sink, true);
    /// One way to a sink that counts.
    pub const FIRE_AND_FORGET: Self = Self::new("fire-and-forget", CountedBy::Sink, false);
    /// Into the node, without a receiver.
    pub const WRITE: Self = Self::new("write", CountedBy::Sender, false);
    /// Calls one after the other.
    pub const SERIAL: Self = Self::new(Self::SERIAL_NAME, CountedBy::Sender, true);
    /// The same on a blocking socket, without a runtime.
    pub const BLOCKING: Self = Self::new("blocking", CountedBy::Sender, true);
    /// One way to all of several subscribers, who count.
    pub const PUBLISH: Self = Self::new("publish", CountedBy::Sink, false);
    /// Calls awaited together, bounded.
    pub const CONCURRENT: Self = Self::new("concurrent", CountedBy::Sender, true);
    /// Calls whose replies reach a callback.
    pub const CALLBACK: Self = Self::new("callback", CountedBy::Sender, true);

    /// A mode of another benchmark. The name is lower-case words joined by hyphens.
    #[must_use]
    pub const fn new(name: &'static str, counted_by: CountedBy, answered: bool) -> Self {
        Self {
            name: Cow::Borrowed(name),
            counted_by,
            answered,
        }
    }

    /// What a caller gets done, whatever its means: one call after the other is the same job with a
    /// blocking socket.
    #[must_use]
    pub fn job(&self) -> &str {
        match self.name.as_ref() {
            "blocking" => Self::SERIAL_NAME,
            name => name,
        }
    }

    /// The name as a heading: `Request-Reply`.
    #[must_use]
    pub fn title(&self) -> String {
        let words = self.name.split('-').map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_uppercase().chain(letters).collect::<String>()
            })
        });
        words.collect::<Vec<_>>().join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_name_with_capitals() {
        assert_eq!(Mode::FIRE_AND_FORGET.title(), "Fire-And-Forget");
        assert_eq!(Mode::SERIAL.title(), "Serial");
    }
}
