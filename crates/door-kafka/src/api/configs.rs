//! The configuration of topics as Kafka's tools show it.

use kafka::ErrorCode;
use topics::{Config, Key, Kind};

use crate::errors::Failed;

/// The resource type of a topic.
pub(super) const TOPIC: i8 = 2;
/// The resource type of a broker.
pub(super) const BROKER: i8 = 4;

/// The source of a value, in Kafka's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The value is set for the topic.
    Topic,
    /// The value was set when the node was started.
    Start,
    /// The value is Kafka's default.
    Default,
}

impl Source {
    pub(super) fn code(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::Start => 4,
            Self::Default => 5,
        }
    }
}

/// Returns all keys of a topic with their values and sources. `defaults` is the configuration of
/// topics without values of their own. Keys that Kafka 4 does not have are included only if they
/// are set. On a cluster, `min_insync` is the number of replicas that acknowledge a record; it takes
/// the place of the topic's own value.
pub(super) fn each<'a>(
    config: &'a Config,
    defaults: &'a Config,
    min_insync: Option<&'a str>,
) -> impl Iterator<Item = (Key, &'a str, Source)> {
    let shown = move |key: &&Key| key.is_current() || config.is_set(**key);
    Key::ALL.iter().filter(shown).map(move |&key| {
        let source = match (config.is_set(key), defaults.is_set(key)) {
            (true, _) => Source::Topic,
            (false, true) => Source::Start,
            (false, false) => Source::Default,
        };
        match min_insync.filter(|_| key == Key::MinInsyncReplicas) {
            Some(value) if source == Source::Default => (key, value, Source::Start),
            Some(value) => (key, value, source),
            None => (key, config.saying(key, defaults).value(key), source),
        }
    })
}

/// Returns the type of a value, in Kafka's numbers.
pub(super) fn kind_code(kind: Kind) -> i8 {
    match kind {
        Kind::Flag => 1,
        Kind::Word => 2,
        Kind::Int => 3,
        Kind::Long => 5,
        Kind::Double => 6,
        Kind::List => 7,
    }
}

/// Returns the error for a resource that cannot be configured while the node runs.
pub(super) fn not_alterable(resource_type: i8) -> Failed {
    let message = match resource_type {
        BROKER => "the broker's configuration is set when the node is started: telpher config show",
        _ => "only topics have a configuration that can be changed",
    };
    Failed::new(ErrorCode::InvalidRequest, message)
}
