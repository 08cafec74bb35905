//! Options of topics: defaults of new topics, and bounds.

use std::time::Duration;

use model::ByteSize;
use topic_service::Options as Topics;
use topics::{Alter, Config, Key};

use super::units::{count, duration, ms, size};

options! {
    /// Topics: defaults of new topics, and bounds. Retention and compaction are configured per
    /// topic.
    topics, "Topics";

    /// Create a topic when a client requests it by name.
    "topics.auto_create" => auto_create: bool = Topics::default().auto_create;

    /// Number of partitions of a topic that is created without a number.
    "topics.partitions" => partitions: u32 = Topics::default().partitions, from "1" to "10000";

    /// Retention time of topics without a retention.ms of their own.
    "topics.retention" => retention: Duration =
        duration(Config::default().retention_ms().unwrap_or(i64::MAX)),
        from "1s" to "876000h";

    /// Retained bytes per partition of topics without a retention.bytes of their own; `0B` is no
    /// limit.
    "topics.retention_size" => retention_size: ByteSize =
        ByteSize::bytes(Config::default().retention_bytes().unwrap_or(0));

    /// Retention by time deletes no record sooner than this after its append, regardless of its
    /// timestamp (Kafka's log.retention.check.interval.ms). An expired record is then deleted
    /// within 10 s.
    "topics.retention_check_interval" => retention_check_interval: Duration =
        duration(Topics::default().retention_check_interval_ms), from "0ms" to "24h";

    /// Maximum number of partitions, over all topics.
    "topics.partitions_max" => partitions_max: u32 = Topics::default().partitions_max, from "1" to "1000000";

    /// Maximum number of idempotent producers that one partition remembers; above it those that
    /// have been inactive for longest are forgotten.
    "topics.producers_max" => producers_max: u32 = count(Topics::default().producers_max), from "16" to "1000000";

    /// Time for which an inactive producer is remembered (Kafka's producer.id.expiration.ms).
    "topics.producer_silence" => producer_silence: Duration =
        duration(Topics::default().producer_silent_ms), from "1m" to "8760h";

    /// Time for which an unused transactional id is remembered (Kafka's
    /// transactional.id.expiration.ms). Its producer cannot continue after that.
    "topics.transactional_id_expiration" => transactional_id_expiration: Duration =
        duration(Topics::default().transactional_id_unused_ms), from "1m" to "8760h";

    /// Maximum transaction timeout that a producer may request (Kafka's
    /// transaction.max.timeout.ms).
    "topics.transaction_timeout_max" => transaction_timeout_max: Duration =
        duration(i64::from(Topics::default().transaction_timeout_ms_max)), from "1s" to "24h";

    /// Maximum number of consumer groups.
    "topics.groups_max" => groups_max: u32 = count(Topics::default().groups.groups_max), from "1" to "10000000";

    /// Time for which the first rebalance of an empty group waits for members (Kafka's
    /// group.initial.rebalance.delay.ms).
    "topics.group_join_delay" => group_join_delay: Duration =
        duration(i64::from(Topics::default().groups.initial_rebalance_delay_ms)), from "0ms" to "1m";

    /// Time for which the offsets of a group without members are kept (Kafka's
    /// offsets.retention.minutes).
    "topics.group_offsets_kept" => group_offsets_kept: Duration =
        Duration::from_millis(Topics::default().groups.offsets_retention_ms), from "1m" to "87600h";

    /// Memory for the keys of one compaction; records beyond them wait for the next compaction.
    "topics.compaction_size_max" => compaction_size_max: ByteSize =
        size(Topics::default().compaction_size_max), from "1MiB" to "16GiB";

    /// Memory for compressed batches that are unpacked for readers over HTTP and the native
    /// protocol; above it readers wait.
    "topics.unpacked_size_max" => unpacked_size_max: ByteSize =
        ByteSize::bytes(Topics::default().unpacked_size_max), from "64MiB" to "64GiB";
}

impl Options {
    /// Returns the options as the topic service takes them.
    pub fn to_service(&self) -> Topics {
        let defaults = Topics::default();
        Topics {
            auto_create: self.auto_create,
            partitions: self.partitions,
            partitions_max: self.partitions_max,
            producers_max: self.producers_max as usize,
            producer_silent_ms: ms(self.producer_silence),
            transactional_id_unused_ms: ms(self.transactional_id_expiration),
            retention_check_interval_ms: ms(self.retention_check_interval),
            transaction_timeout_ms_max: i32::try_from(self.transaction_timeout_max.as_millis())
                .unwrap_or(i32::MAX),
            groups: topics::groups::Options {
                groups_max: self.groups_max as usize,
                initial_rebalance_delay_ms: u32::try_from(self.group_join_delay.as_millis())
                    .unwrap_or(u32::MAX),
                offsets_retention_ms: u64::try_from(self.group_offsets_kept.as_millis())
                    .unwrap_or(u64::MAX),
                ..defaults.groups
            },
            compaction_size_max: self.compaction_size_max.as_usize(),
            unpacked_size_max: self.unpacked_size_max.as_u64(),
            defaults: self.topic_defaults(),
        }
    }

    /// Returns the configuration of topics that do not set it themselves.
    fn topic_defaults(&self) -> Config {
        let retention_bytes = match self.retention_size.as_u64() {
            0 => -1,
            bytes => i64::try_from(bytes).unwrap_or(i64::MAX),
        };
        let mut defaults = Config::default();
        for (key, value) in [
            (Key::RetentionMs, ms(self.retention).to_string()),
            (Key::RetentionBytes, retention_bytes.to_string()),
        ] {
            if value != key.default() {
                let set = defaults.alter(key, Alter::Set(&value));
                set.expect("the options have a range within that of the keys");
            }
        }
        defaults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_options_are_those_of_the_service() {
        assert_eq!(Options::default().to_service(), Topics::default());
    }
}
