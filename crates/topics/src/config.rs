//! The configuration of a topic.
//!
//! The keys, their values and their defaults are Apache Kafka's; `telpher.durability` is ours. A
//! key that has no effect on a single broker is checked, stored and shown, and
//! [`Key::documentation`] says so. An unknown key is refused by name.

mod key;
mod value;

pub use key::Key;
pub use value::Kind;

use key::names;
use value::{items, ratio};

/// When a produce request is acknowledged and its records are shown to consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When they are on disk.
    Disk,
    /// When they are in memory.
    Memory,
}

/// The source of a record's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timestamps {
    /// CreateTime: the producer sets it.
    Create,
    /// LogAppendTime: the node's clock at the append.
    Append,
}

/// The codec to which the node recompresses batches, and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Batches are stored without compression.
    None,
    /// gzip, at a level from 1 to 9; `None` is the default level.
    Gzip(Option<u32>),
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
    /// zstd, at a level up to 22.
    Zstd(i32),
}

/// The settings that decide when a partition is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionPolicy {
    /// The share of uncompacted bytes from which compaction starts, from 0 to 1.
    pub dirty_ratio_min: f64,
    /// The shortest time for which a record stays uncompacted, in milliseconds.
    pub lag_ms_min: i64,
    /// The longest time for which a record stays uncompacted, in milliseconds.
    pub lag_ms_max: i64,
    /// The time after which the newest records may be compacted too, in milliseconds.
    pub segment_ms: i64,
}

/// The cleanup policy of a topic: how old records are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// Retention removes them by time and size.
    pub deletes: bool,
    /// Compaction removes a record when a newer one has its key.
    pub compacts: bool,
}

/// A topic's configuration: the values that are set. All other keys have their default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    set: Vec<(Key, String)>,
}

/// The reason why a configuration is refused: INVALID_CONFIG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfig {
    /// The key does not exist.
    #[error("unknown topic config `{key}` (known: {})", names())]
    Key {
        /// The given key.
        key: String,
    },
    /// The key does not accept this value.
    #[error("invalid value `{value}` of {}: {}", key.name(), key.expects())]
    Value {
        /// The key.
        key: Key,
        /// The given value.
        value: String,
    },
    /// `min.compaction.lag.ms` is above `max.compaction.lag.ms`.
    #[error("min.compaction.lag.ms ({min}) is above max.compaction.lag.ms ({max})")]
    CompactionLag {
        /// The value of `min.compaction.lag.ms`.
        min: i64,
        /// The value of `max.compaction.lag.ms`.
        max: i64,
    },
    /// The key is not a list, so nothing can be appended to it or removed from it.
    #[error("{} is not a list", key.name())]
    NoList {
        /// The key.
        key: Key,
    },
}

/// An operation on a value, as in IncrementalAlterConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alter<'a> {
    /// Sets the value.
    Set(&'a str),
    /// Resets it to the default.
    Reset,
    /// Appends these words to a list.
    Append(&'a str),
    /// Removes these words from a list.
    Subtract(&'a str),
}

impl Config {
    /// Sets or resets a value.
    pub fn alter(&mut self, key: Key, what: Alter<'_>) -> Result<(), BadConfig> {
        let value = match what {
            Alter::Set(value) => Some(value.to_owned()),
            Alter::Reset => None,
            Alter::Append(_) | Alter::Subtract(_) if key.kind() != Kind::List => {
                return Err(BadConfig::NoList { key });
            }
            Alter::Append(more) => {
                let mut list: Vec<_> = items(self.value(key)).collect();
                list.extend(items(more));
                let mut seen = Vec::new();
                list.retain(|it| {
                    !seen.contains(it) && {
                        seen.push(*it);
                        true
                    }
                });
                Some(list.join(","))
            }
            Alter::Subtract(less) => {
                let list = items(self.value(key));
                let left: Vec<_> = list
                    .filter(|it| !items(less).any(|gone| gone == *it))
                    .collect();
                Some(left.join(","))
            }
        };
        if let Some(value) = &value {
            key.check(value)?;
        }
        self.set.retain(|it| it.0 != key);
        if let Some(value) = value {
            let at = self.set.partition_point(|it| it.0 < key);
            self.set.insert(at, (key, value));
        }
        Ok(())
    }

    /// Checks keys against each other, once all of them are set.
    pub fn check(&self) -> Result<(), BadConfig> {
        let CompactionPolicy {
            lag_ms_min: min,
            lag_ms_max: max,
            ..
        } = self.compaction();
        match min <= max {
            true => Ok(()),
            false => Err(BadConfig::CompactionLag { min, max }),
        }
    }

    /// Returns the value of a key, as text.
    pub fn value(&self, key: Key) -> &str {
        let set = self.set.iter().find(|it| it.0 == key);
        set.map_or(key.default(), |it| &it.1)
    }

    /// Returns the configuration that defines a key: this one if the key is set, else `defaults`,
    /// the defaults for all topics.
    pub fn saying<'a>(&'a self, key: Key, defaults: &'a Self) -> &'a Self {
        match self.is_set(key) {
            true => self,
            false => defaults,
        }
    }

    /// Returns whether the key is set here.
    pub fn is_set(&self, key: Key) -> bool {
        self.set.iter().any(|it| it.0 == key)
    }

    /// Returns the values that are set, by key.
    pub fn set(&self) -> impl ExactSizeIterator<Item = (Key, &str)> {
        self.set.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// Returns `cleanup.policy`.
    pub fn cleanup(&self) -> Cleanup {
        let has = |word| items(self.value(Key::CleanupPolicy)).any(|it| it == word);
        Cleanup {
            deletes: has("delete"),
            compacts: has("compact"),
        }
    }

    /// Returns `retention.ms`; `None` is no limit.
    pub fn retention_ms(&self) -> Option<i64> {
        Some(self.number(Key::RetentionMs)).filter(|it| *it >= 0)
    }

    /// Returns `retention.bytes`; `None` is no limit.
    pub fn retention_bytes(&self) -> Option<u64> {
        u64::try_from(self.number(Key::RetentionBytes)).ok()
    }

    /// Returns `delete.retention.ms`.
    pub fn delete_retention_ms(&self) -> i64 {
        self.number(Key::DeleteRetentionMs)
    }

    /// Returns `max.message.bytes`.
    pub fn batch_size_max(&self) -> usize {
        usize::try_from(self.number(Key::MaxMessageBytes)).unwrap_or(usize::MAX)
    }

    /// Returns `message.timestamp.type`.
    pub fn timestamps(&self) -> Timestamps {
        match self.value(Key::MessageTimestampType) {
            "LogAppendTime" => Timestamps::Append,
            _ => Timestamps::Create,
        }
    }

    /// Returns `message.timestamp.before.max.ms`: how far a record's time may be behind, in
    /// milliseconds.
    pub fn timestamp_before_ms_max(&self) -> i64 {
        self.number(Key::MessageTimestampBeforeMaxMs)
    }

    /// Returns `message.timestamp.after.max.ms`: how far a record's time may be ahead, in
    /// milliseconds.
    pub fn timestamp_after_ms_max(&self) -> i64 {
        self.number(Key::MessageTimestampAfterMaxMs)
    }

    /// Returns `compression.type` with its level; `None` is `producer`: batches are stored as they
    /// were sent.
    pub fn compression(&self) -> Option<Codec> {
        Some(match self.value(Key::CompressionType) {
            "uncompressed" => Codec::None,
            "gzip" => Codec::Gzip(u32::try_from(self.number(Key::CompressionGzipLevel)).ok()),
            "snappy" => Codec::Snappy,
            "lz4" => Codec::Lz4,
            "zstd" => {
                let level = self.number(Key::CompressionZstdLevel);
                Codec::Zstd(i32::try_from(level).unwrap_or(i32::MAX))
            }
            _ => return None,
        })
    }

    /// Returns `min.cleanable.dirty.ratio`, `min.compaction.lag.ms`, `max.compaction.lag.ms` and
    /// `segment.ms`.
    pub fn compaction(&self) -> CompactionPolicy {
        let dirty_ratio_min = ratio(self.value(Key::MinCleanableDirtyRatio));
        CompactionPolicy {
            dirty_ratio_min: dirty_ratio_min.expect("a number was checked when it was set"),
            lag_ms_min: self.number(Key::MinCompactionLagMs),
            lag_ms_max: self.number(Key::MaxCompactionLagMs),
            segment_ms: self.number(Key::SegmentMs),
        }
    }

    /// Returns `telpher.durability`.
    pub fn durability(&self) -> Durability {
        match self.value(Key::Durability) {
            "memory" => Durability::Memory,
            _ => Durability::Disk,
        }
    }

    fn number(&self, key: Key) -> i64 {
        let number = self.value(key).trim().parse();
        number.expect("a number was checked when it was set")
    }
}

#[cfg(test)]
mod tests;
