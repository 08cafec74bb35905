//! Areas of the system, and the message exchange modes in them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Part of the system that a benchmark measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// Messages between agents through a node.
    Agent,
    /// RPC calls.
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
    /// Returns the area's name in lines and files.
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

/// Side that counts a mode's throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedBy {
    /// Completions at the sender over the send window.
    Sender,
    /// Arrivals at the sink over its active window.
    Sink,
}

/// A message exchange pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mode {
    /// Stable name: `request-reply`.
    pub name: Cow<'static, str>,
    /// Side that counts the throughput.
    pub counted_by: CountedBy,
    /// True if the sender waits for answers, which makes latency a result.
    pub answered: bool,
}

impl Mode {
    const SERIAL_NAME: &str = "serial";

    /// Request-reply: each message is answered before the next leaves; the responder counts.
    pub const REQUEST_REPLY: Self = Self::new("request-reply", CountedBy::Sink, true);
    /// One-way messages to a sink that counts.
    pub const FIRE_AND_FORGET: Self = Self::new("fire-and-forget", CountedBy::Sink, false);
    /// One-way messages into the node, without a receiver.
    pub const WRITE: Self = Self::new("write", CountedBy::Sender, false);
    /// Serial calls, one after the other.
    pub const SERIAL: Self = Self::new(Self::SERIAL_NAME, CountedBy::Sender, true);
    /// Serial calls on a blocking socket, without a runtime.
    pub const BLOCKING: Self = Self::new("blocking", CountedBy::Sender, true);
    /// One-way messages to all of several subscribers, which count.
    pub const PUBLISH: Self = Self::new("publish", CountedBy::Sink, false);
    /// Concurrent calls, awaited together up to a bound.
    pub const CONCURRENT: Self = Self::new("concurrent", CountedBy::Sender, true);
    /// Calls whose replies reach a callback.
    pub const CALLBACK: Self = Self::new("callback", CountedBy::Sender, true);

    /// Durable appends: each is acknowledged when it is on disk.
    pub const APPEND: Self = Self::new("append", CountedBy::Sender, true);
    /// Kafka producers that share one connection.
    pub const PRODUCE: Self = Self::new("produce", CountedBy::Sender, true);
    /// Kafka producers with a connection each.
    pub const CONNECTIONS: Self = Self::new("connections", CountedBy::Sender, true);
    /// Maximum throughput of large Kafka batches.
    pub const BULK: Self = Self::new("bulk", CountedBy::Sender, true);
    /// Reading a filled topic.
    pub const CONSUME: Self = Self::new("consume", CountedBy::Sender, false);
    /// Latency from a Kafka producer to a consumer.
    pub const END_TO_END: Self = Self::new("end-to-end", CountedBy::Sender, true);
    /// Takes from quotas, in a closed loop or on a schedule.
    pub const TAKE: Self = Self::new("take", CountedBy::Sender, true);
    /// A fixed number of takes.
    pub const COUNT: Self = Self::new("count", CountedBy::Sender, true);
    /// Virtual users that send several requests in turn, and think.
    pub const MIX: Self = Self::new("mix", CountedBy::Sender, true);

    /// Makes a mode of another benchmark. The name is lower-case words joined by hyphens.
    #[must_use]
    pub const fn new(name: &'static str, counted_by: CountedBy, answered: bool) -> Self {
        Self {
            name: Cow::Borrowed(name),
            counted_by,
            answered,
        }
    }

    /// Returns the name of the caller's job, independent of its means: serial calls on a blocking
    /// socket are the same job as serial calls.
    #[must_use]
    pub fn job(&self) -> &str {
        match self.name.as_ref() {
            "blocking" => Self::SERIAL_NAME,
            name => name,
        }
    }

    /// Formats the name as a heading: `Request-Reply`.
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
