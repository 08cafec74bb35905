//! Options of topics: defaults of new topics, and bounds.

use std::time::Duration;

use ::topics::{Alter, Config, Key};
use model::ByteSize;

options! {
    /// Topics: defaults of new topics, and bounds. Retention and compaction are configured per
    /// topic.
    topics, "Topics";

    /// Create a topic when a client requests it by name.
    "topics.auto_create" => auto_create: bool = true;

    /// Number of partitions of a topic that is created without a number.
    "topics.partitions" => partitions: u32 = 3, from "1" to "10000";

    /// Retention time of topics without a retention.ms of their own.
    "topics.retention" => retention: Duration = Duration::from_secs(7 * 24 * 3600),
        from "1s" to "876000h";

    /// Retained bytes per partition of topics without a retention.bytes of their own; `0B` is no
    /// limit.
    "topics.retention_size" => retention_size: ByteSize = ByteSize::bytes(0);

    /// Retention by time deletes no record sooner than this after its append, regardless of its
    /// timestamp (Kafka's log.retention.check.interval.ms). An expired record is then deleted
    /// within 10 s.
    "topics.retention_check_interval" => retention_check_interval: Duration = Duration::from_secs(300),
        from "0ms" to "24h";

    /// Maximum number of partitions, over all topics.
    "topics.partitions_max" => partitions_max: u32 = 100_000, from "1" to "1000000";

    /// Maximum number of idempotent producers that one partition remembers; above it those that
    /// have been inactive for longest are forgotten.
    "topics.producers_max" => producers_max: u32 = 10_000, from "16" to "1000000";

    /// Time for which an inactive producer is remembered (Kafka's producer.id.expiration.ms).
    "topics.producer_silence" => producer_silence: Duration = Duration::from_secs(24 * 3600),
        from "1m" to "8760h";

    /// Time for which an unused transactional id is remembered (Kafka's
    /// transactional.id.expiration.ms). Its producer cannot continue after that.
    "topics.transactional_id_expiration" => transactional_id_expiration: Duration =
        Duration::from_secs(7 * 24 * 3600), from "1m" to "8760h";

    /// Maximum transaction timeout that a producer may request (Kafka's
    /// transaction.max.timeout.ms).
    "topics.transaction_timeout_max" => transaction_timeout_max: Duration = Duration::from_secs(900),
        from "1s" to "24h";

    /// Maximum number of consumer groups.
    "topics.groups_max" => groups_max: u32 = 100_000, from "1" to "10000000";

    /// Time for which the first rebalance of an empty group waits for members (Kafka's
    /// group.initial.rebalance.delay.ms).
    "topics.group_join_delay" => group_join_delay: Duration = Duration::from_millis(100),
        from "0ms" to "1m";

    /// Time for which the offsets of a group without members are kept (Kafka's
    /// offsets.retention.minutes).
    "topics.group_offsets_kept" => group_offsets_kept: Duration = Duration::from_secs(7 * 24 * 3600),
        from "1m" to "87600h";

    /// Memory for the keys of one compaction; records beyond them wait for the next compaction.
    "topics.compaction_size_max" => compaction_size_max: ByteSize = ByteSize::mebibytes(64),
        from "1MiB" to "16GiB";

    /// Memory for compressed batches that are unpacked for readers over HTTP and the native
    /// protocol; above it readers wait.
    "topics.unpacked_size_max" => unpacked_size_max: ByteSize = ByteSize::mebibytes(256),
        from "64MiB" to "64GiB";
}

impl Options {
    /// The options as the topic service takes them.
    pub fn to_node(&self) -> crate::topics::Options {
        let defaults = crate::topics::Options::default();
        crate::topics::Options {
            auto_create: self.auto_create,
            partitions: self.partitions,
            partitions_max: self.partitions_max,
            producers_max: self.producers_max as usize,
            producer_silent_ms: i64::try_from(self.producer_silence.as_millis())
                .unwrap_or(i64::MAX),
            transactional_id_unused_ms: i64::try_from(self.transactional_id_expiration.as_millis())
                .unwrap_or(i64::MAX),
            retention_check_interval_ms: i64::try_from(self.retention_check_interval.as_millis())
                .unwrap_or(i64::MAX),
            transaction_timeout_ms_max: i32::try_from(self.transaction_timeout_max.as_millis())
                .unwrap_or(i32::MAX),
            groups: ::topics::groups::Options {
                groups_max: self.groups_max as usize,
                initial_rebalance_delay_ms: u32::try_from(self.group_join_delay.as_millis())
                    .unwrap_or(u32::MAX),
                offsets_retention_ms: u64::try_from(self.group_offsets_kept.as_millis())
                    .unwrap_or(u64::MAX),
                ..defaults.groups
            },
            compaction_size_max: usize::try_from(self.compaction_size_max.as_u64())
                .unwrap_or(usize::MAX),
            unpacked_size_max: self.unpacked_size_max.as_u64(),
            defaults: self.defaults(),
        }
    }

    /// The configuration of topics that do not set it themselves.
    fn defaults(&self) -> Config {
        let retention_ms = i64::try_from(self.retention.as_millis()).unwrap_or(i64::MAX);
        let retention_bytes = match self.retention_size.as_u64() {
            0 => -1,
            bytes => i64::try_from(bytes).unwrap_or(i64::MAX),
        };
        let mut defaults = Config::default();
        for (key, value) in [
            (Key::RetentionMs, retention_ms.to_string()),
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
