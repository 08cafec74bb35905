//! The configuration of a topic.
//!
//! The keys, their values and their defaults are Apache Kafka's; `telpher.durability` is ours. A key
//! that means nothing on one broker is checked, kept and shown, and [`Key::documentation`] says that
//! it changes nothing. A key that Kafka does not have is refused by name.

mod key;
mod value;

pub use key::Key;
pub use value::Kind;

use key::names;
use value::{items, ratio};

/// How sure an answer makes that records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// They are on disk.
    Disk,
    /// They are in memory.
    Memory,
}

/// Whose time a topic's records have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timestamps {
    /// The producer's.
    Create,
    /// That of the append.
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

/// When a partition is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionPolicy {
    /// The share of new bytes from which on it is worth it, from 0 to 1.
    pub dirty_ratio_min: f64,
    /// How long records stay uncompacted at least, in milliseconds.
    pub lag_ms_min: i64,
    /// How long records stay uncompacted at most, in milliseconds.
    pub lag_ms_max: i64,
    /// After which time the newest records are compacted as well, in milliseconds.
    pub segment_ms: i64,
}

/// What becomes of old records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// They go by time and size.
    pub deletes: bool,
    /// They go when there is a newer one of the same key.
    pub compacts: bool,
}

/// A topic's configuration: what is set. Everything else is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    set: Vec<(Key, String)>,
}

/// Why a configuration is refused: INVALID_CONFIG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfig {
    /// There is no such key.
    #[error("unknown topic config `{key}`: there are {}", names())]
    Key {
        /// What was given.
        key: String,
    },
    /// The key takes no such value.
    #[error("`{value}` is no value of {}: {}", key.name(), key.expects())]
    Value {
        /// Of what.
        key: Key,
        /// What was given.
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
    /// Only lists are appended to.
    #[error("{} is no list", key.name())]
    NoList {
        /// Of what.
        key: Key,
    },
}

/// What is done to a value, as IncrementalAlterConfigs has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alter<'a> {
    /// It is this.
    Set(&'a str),
    /// It is the default again.
    Reset,
    /// A list gets these words too.
    Append(&'a str),
    /// A list loses these words.
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

    /// Checks what keys say about each other, once all of them are set.
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

    /// The value of a key, as text.
    pub fn value(&self, key: Key) -> &str {
        let set = self.set.iter().find(|it| it.0 == key);
        set.map_or(key.default(), |it| &it.1)
    }

    /// Which of both says what a value is: this one, or what topics are like of which nobody said
    /// otherwise.
    pub fn saying<'a>(&'a self, key: Key, defaults: &'a Self) -> &'a Self {
        match self.is_set(key) {
            true => self,
            false => defaults,
        }
    }

    /// Whether it is not the default that counts.
    pub fn is_set(&self, key: Key) -> bool {
        self.set.iter().any(|it| it.0 == key)
    }

    /// What is set, by key.
    pub fn set(&self) -> impl ExactSizeIterator<Item = (Key, &str)> {
        self.set.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// `cleanup.policy`
    pub fn cleanup(&self) -> Cleanup {
        let has = |word| items(self.value(Key::CleanupPolicy)).any(|it| it == word);
        Cleanup {
            deletes: has("delete"),
            compacts: has("compact"),
        }
    }

    /// `retention.ms`
    pub fn retention_ms(&self) -> Option<i64> {
        Some(self.number(Key::RetentionMs)).filter(|it| *it >= 0)
    }

    /// `retention.bytes`
    pub fn retention_bytes(&self) -> Option<u64> {
        u64::try_from(self.number(Key::RetentionBytes)).ok()
    }

    /// `delete.retention.ms`
    pub fn delete_retention_ms(&self) -> i64 {
        self.number(Key::DeleteRetentionMs)
    }

    /// `max.message.bytes`
    pub fn batch_size_max(&self) -> usize {
        usize::try_from(self.number(Key::MaxMessageBytes)).unwrap_or(usize::MAX)
    }

    /// `message.timestamp.type`
    pub fn timestamps(&self) -> Timestamps {
        match self.value(Key::MessageTimestampType) {
            "LogAppendTime" => Timestamps::Append,
            _ => Timestamps::Create,
        }
    }

    /// `message.timestamp.before.max.ms`: how far a record's time may be behind, in milliseconds.
    pub fn timestamp_before_ms_max(&self) -> i64 {
        self.number(Key::MessageTimestampBeforeMaxMs)
    }

    /// `message.timestamp.after.max.ms`: how far a record's time may be ahead, in milliseconds.
    pub fn timestamp_after_ms_max(&self) -> i64 {
        self.number(Key::MessageTimestampAfterMaxMs)
    }

    /// `compression.type` with its level; `None` is `producer`: batches are stored as they were sent.
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

    /// `min.cleanable.dirty.ratio`, `min.compaction.lag.ms`, `max.compaction.lag.ms`, `segment.ms`
    pub fn compaction(&self) -> CompactionPolicy {
        let dirty_ratio_min = ratio(self.value(Key::MinCleanableDirtyRatio));
        CompactionPolicy {
            dirty_ratio_min: dirty_ratio_min.expect("a number was checked when it was set"),
            lag_ms_min: self.number(Key::MinCompactionLagMs),
            lag_ms_max: self.number(Key::MaxCompactionLagMs),
            segment_ms: self.number(Key::SegmentMs),
        }
    }

    /// `telpher.durability`
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
