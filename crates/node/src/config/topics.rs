//! Topics: what they are made like, and what bounds them.

use std::time::Duration;

use ::topics::{Alter, Config, Key};
use model::ByteSize;

options! {
    /// Topics: what they are made like unless somebody says otherwise, and what bounds them. What a
    /// topic keeps, and how long, is configured topic by topic.
    topics, "Topics";

    /// Whether a topic that nobody made is made when a client asks for it by name.
    "topics.auto_create" => auto_create: bool = true;

    /// Partitions of a topic of which nobody said how many.
    "topics.partitions" => partitions: u32 = 3, from "1" to "10000";

    /// How long records are kept of a topic whose retention.ms nobody has set.
    "topics.retention" => retention: Duration = Duration::from_secs(7 * 24 * 3600),
        from "1s" to "876000h";

    /// Bytes that are kept of each partition of a topic whose retention.bytes nobody has set; 0B for all
    /// that are young enough.
    "topics.retention_size" => retention_size: ByteSize = ByteSize::bytes(0);

    /// Retention by time deletes no record sooner than this after its append, whatever its timestamp
    /// says (Kafka's log.retention.check.interval.ms). A record whose time is over then is deleted
    /// within 10 s.
    "topics.retention_check_interval" => retention_check_interval: Duration = Duration::from_secs(300),
        from "0ms" to "24h";

    /// Partitions of all topics.
    "topics.partitions_max" => partitions_max: u32 = 100_000, from "1" to "1000000";

    /// Producers whose batches one partition knows again; of more, those that were silent for the
    /// longest time are forgotten.
    "topics.producers_max" => producers_max: u32 = 10_000, from "16" to "1000000";

    /// How long a producer is known again that sends nothing.
    "topics.producer_silence" => producer_silence: Duration = Duration::from_secs(24 * 3600),
        from "1m" to "8760h";

    /// How long a transactional id is known that is not used (Kafka's transactional.id.expiration.ms). Its
    /// producer cannot go on after that.
    "topics.transactional_id_expiration" => transactional_id_expiration: Duration =
        Duration::from_secs(7 * 24 * 3600), from "1m" to "8760h";

    /// How long a transaction may ask for at most.
    "topics.transaction_timeout_max" => transaction_timeout_max: Duration = Duration::from_secs(900),
        from "1s" to "24h";

    /// Consumer groups.
    "topics.groups_max" => groups_max: u32 = 100_000, from "1" to "10000000";

    /// How long the first rebalance of a group without members waits for more of them.
    "topics.group_join_delay" => group_join_delay: Duration = Duration::from_millis(100),
        from "0ms" to "1m";

    /// How long the offsets of a group without members are kept.
    "topics.group_offsets_kept" => group_offsets_kept: Duration = Duration::from_secs(7 * 24 * 3600),
        from "1m" to "87600h";

    /// Bytes of keys that one compaction holds in memory; what comes behind them waits for the next.
    "topics.compaction_size_max" => compaction_size_max: ByteSize = ByteSize::mebibytes(64),
        from "1MiB" to "16GiB";

    /// Bytes that compressed batches take which are unpacked for readers over HTTP and the native protocol, of
    /// all readers together; more readers wait.
    "topics.unpacked_size_max" => unpacked_size_max: ByteSize = ByteSize::mebibytes(256),
        from "64MiB" to "64GiB";
}

impl Options {
    /// As the node takes them.
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

    /// How topics are configured of which nobody said otherwise.
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
