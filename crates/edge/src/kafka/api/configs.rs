//! The configuration of a topic as tools are shown it.

use kafka::ErrorCode;
use node::topics::{Config, Key, Kind};

use crate::kafka::errors::Failed;

/// What is configured: a topic.
pub(super) const TOPIC: i8 = 2;
/// What is configured: a broker.
pub(super) const BROKER: i8 = 4;

/// Where a value comes from, in Kafka's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Somebody has set it for the topic.
    Topic,
    /// It was given to the node when it was started.
    Start,
    /// Nobody has said anything.
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

/// All keys of a topic with their values and where those come from. `defaults` is the configuration of
/// topics of which nothing is set. Keys that Kafka 4 does not have stand there only where they are set.
pub(super) fn each<'a>(
    config: &'a Config,
    defaults: &'a Config,
) -> impl Iterator<Item = (Key, &'a str, Source)> {
    let shown = move |key: &&Key| key.is_current() || config.is_set(**key);
    Key::ALL.iter().filter(shown).map(|&key| {
        let source = match (config.is_set(key), defaults.is_set(key)) {
            (true, _) => Source::Topic,
            (false, true) => Source::Start,
            (false, false) => Source::Default,
        };
        (key, config.saying(key, defaults).value(key), source)
    })
}

/// What kind of value it is, in Kafka's numbers.
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

/// Only topics can be configured while the node runs.
pub(super) fn not_alterable(resource_type: i8) -> Failed {
    let message = match resource_type {
        BROKER => "the node is configured where it is started: telpher config show",
        _ => "only topics have a configuration that can be changed",
    };
    Failed::new(ErrorCode::InvalidRequest, message)
}
