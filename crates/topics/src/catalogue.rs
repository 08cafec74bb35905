//! The catalogue of topics: names, ids, partition counts and configurations.
//!
//! A change is decided here, written, and then applied ([`Catalogue::put`], [`Catalogue::remove`]),
//! under one lock. A topic id is never reused: the id of a deleted topic never reaches another
//! topic of the same name.

use std::collections::{BTreeMap, HashMap};

use crate::config::{Alter, BadConfig, Config, Key};
use crate::ids::TopicId;
use crate::names::{BadName, check_name, collision_key};

/// The limits of a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Partitions of all topics together.
    pub partitions_max: u32,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            partitions_max: 100_000,
        }
    }
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The id, which never changes.
    pub id: TopicId,
    /// The name that clients use.
    pub name: String,
    /// The number of partitions.
    pub partitions: u32,
    /// When the topic was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// The configuration.
    pub config: Config,
}

/// The reason why a topic is not created or changed, with Kafka's error for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// INVALID_TOPIC_EXCEPTION.
    #[error(transparent)]
    Name(#[from] BadName),
    /// INVALID_TOPIC_EXCEPTION.
    #[error("topic `{name}` collides with `{other}`: . and _ are the same in names of metrics")]
    Collision {
        /// The requested name.
        name: String,
        /// The existing topic.
        other: String,
    },
    /// TOPIC_ALREADY_EXISTS.
    #[error("topic `{name}` already exists")]
    Exists {
        /// The requested name.
        name: String,
    },
    /// UNKNOWN_TOPIC_OR_PARTITION, or UNKNOWN_TOPIC_ID for an id.
    #[error("there is no such topic")]
    Unknown,
    /// INVALID_PARTITIONS.
    #[error("{partitions} partitions: the number must be above the present {now}")]
    Partitions {
        /// The requested number.
        partitions: i32,
        /// The present number.
        now: u32,
    },
    /// POLICY_VIOLATION.
    #[error(
        "too many partitions: {left} more can be created (limit {max}, `topics.partitions_max`)"
    )]
    Room {
        /// The number of partitions that can still be created.
        left: u32,
        /// The limit.
        max: u32,
    },
    /// INVALID_CONFIG.
    #[error(transparent)]
    Config(#[from] BadConfig),
}

/// All topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    room: Room,
    topics: BTreeMap<String, Topic>,
    names: HashMap<TopicId, String>,
    /// The existing names by [`collision_key`].
    collisions: HashMap<String, String>,
    partitions: u32,
}

impl Catalogue {
    /// Returns an empty catalogue.
    pub fn new(room: Room) -> Self {
        Self {
            room,
            ..Self::default()
        }
    }

    /// Decides the creation of a topic. `id` is one that no topic has had.
    pub fn decide_create(
        &self,
        id: TopicId,
        name: &str,
        partitions: i32,
        configs: &[(&str, Option<&str>)],
        now_ms: i64,
    ) -> Result<Topic, TopicError> {
        debug_assert!(id != TopicId::NONE && !self.names.contains_key(&id));
        check_name(name)?;
        let named = || name.to_owned();
        if self.topics.contains_key(name) {
            return Err(TopicError::Exists { name: named() });
        }
        if let Some(other) = self.collisions.get(&collision_key(name)) {
            let (name, other) = (named(), other.clone());
            return Err(TopicError::Collision { name, other });
        }
        let partitions = self.check_partitions(partitions, 0)?;
        let config = config_of(configs)?;
        Ok(Topic {
            id,
            name: named(),
            partitions,
            created_ms: now_ms,
            config,
        })
    }

    /// Decides a larger number of partitions; `partitions` is the new total.
    pub fn decide_partitions(&self, name: &str, partitions: i32) -> Result<Topic, TopicError> {
        let topic = self.topics.get(name).ok_or(TopicError::Unknown)?;
        let partitions = self.check_partitions(partitions, topic.partitions)?;
        Ok(Topic {
            partitions,
            ..topic.clone()
        })
    }

    /// Decides a change of some configuration values (IncrementalAlterConfigs).
    pub fn decide_alter(
        &self,
        name: &str,
        alters: &[(&str, Alter<'_>)],
    ) -> Result<Topic, TopicError> {
        let mut topic = self.topics.get(name).ok_or(TopicError::Unknown)?.clone();
        for (key, what) in alters {
            topic.config.alter(Key::parse(key)?, *what)?;
        }
        topic.config.check()?;
        Ok(topic)
    }

    /// Decides a new configuration: exactly these values are set (AlterConfigs).
    pub fn decide_replace(
        &self,
        name: &str,
        configs: &[(&str, Option<&str>)],
    ) -> Result<Topic, TopicError> {
        let topic = self.topics.get(name).ok_or(TopicError::Unknown)?;
        let config = config_of(configs)?;
        Ok(Topic {
            config,
            ..topic.clone()
        })
    }

    /// Adds or replaces a topic as it was written.
    pub fn put(&mut self, topic: Topic) {
        let before = self.topics.get(&topic.name).map_or(0, |it| it.partitions);
        self.partitions = self.partitions - before + topic.partitions;
        self.names.insert(topic.id, topic.name.clone());
        let key = collision_key(&topic.name);
        self.collisions.insert(key, topic.name.clone());
        self.topics.insert(topic.name.clone(), topic);
    }

    /// Removes a topic.
    pub fn remove(&mut self, id: TopicId) -> Option<Topic> {
        let topic = self.topics.remove(&self.names.remove(&id)?)?;
        self.collisions.remove(&collision_key(&topic.name));
        self.partitions -= topic.partitions;
        Some(topic)
    }

    /// Returns the topic of this name.
    pub fn get(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// Returns the topic of this id.
    pub fn by_id(&self, id: TopicId) -> Option<&Topic> {
        self.topics.get(self.names.get(&id)?)
    }

    /// Returns all topics, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Topic> {
        self.topics.values()
    }

    fn check_partitions(&self, partitions: i32, now: u32) -> Result<u32, TopicError> {
        let more = u32::try_from(partitions).ok().filter(|it| *it > now);
        let Some(wanted) = more else {
            return Err(TopicError::Partitions { partitions, now });
        };
        let max = self.room.partitions_max;
        let left = max.saturating_sub(self.partitions);
        if wanted - now > left {
            return Err(TopicError::Room { left, max });
        }
        Ok(wanted)
    }
}

/// Returns the configuration in which exactly these values are set.
fn config_of(configs: &[(&str, Option<&str>)]) -> Result<Config, BadConfig> {
    let mut config = Config::default();
    for (key, value) in configs {
        let key = Key::parse(key)?;
        config.alter(key, value.map_or(Alter::Reset, Alter::Set))?;
    }
    config.check()?;
    Ok(config)
}

#[cfg(test)]
mod tests;
