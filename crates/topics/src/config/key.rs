//! The configuration keys of a topic: names, types, defaults, ranges and documentation.

use super::value::Values::{self, Flag, Int, List, Long, Ratio, Replicas, Word};
use super::{BadConfig, Kind};

/// The largest value of a 64-bit key: "never", in Kafka's defaults.
const LONG_MAX: i64 = i64::MAX;
/// The largest value of a 32-bit key.
const INT_MAX: i64 = i32::MAX as i64;

/// A row of the table of keys.
struct Row {
    name: &'static str,
    values: Values,
    default: &'static str,
    broker_name: Option<&'static str>,
    documentation: &'static str,
}

macro_rules! keys {
    ($($key:ident = $number:literal, $name:literal, $values:expr, $default:literal,
        $broker_name:expr, $documentation:literal;)*) => {
        /// A configuration key of a topic. The numbers are stored on disk.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Key {
            $( #[doc = concat!("`", $name, "`")] $key = $number, )*
        }

        impl Key {
            /// All keys, by name.
            pub const ALL: &[Self] = &[$( Self::$key, )*];

            fn row(self) -> &'static Row {
                match self {
                    $( Self::$key => const { &Row {
                        name: $name,
                        values: $values,
                        default: $default,
                        broker_name: $broker_name,
                        documentation: $documentation,
                    } }, )*
                }
            }
        }
    };
}

keys! {
    CleanupPolicy = 1, "cleanup.policy", List(&["delete", "compact"]), "delete",
        Some("log.cleanup.policy"),
        "delete: old records are removed by retention; compact: the newest record of each key stays.";
    CompressionGzipLevel = 10, "compression.gzip.level", Int { range: (1, 9), or: Some(-1) }, "-1",
        Some("compression.gzip.level"),
        "The gzip level where compression.type is gzip; -1 is the default level of gzip.";
    CompressionLz4Level = 11, "compression.lz4.level", Int { range: (1, 17), or: None }, "9",
        Some("compression.lz4.level"),
        "Accepted; the node compresses lz4 at one level.";
    CompressionType = 2, "compression.type",
        Word(&["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]), "producer",
        Some("compression.type"),
        "producer: batches are stored as they were sent; else the node recompresses them to this codec.";
    CompressionZstdLevel = 12, "compression.zstd.level",
        Int { range: (-131_072, 22), or: None }, "3",
        Some("compression.zstd.level"),
        "The zstd level where compression.type is zstd.";
    DeleteRetentionMs = 3, "delete.retention.ms", Long(0, LONG_MAX), "86400000",
        Some("log.cleaner.delete.retention.ms"),
        "How long a deletion marker stays in a compacted topic, in milliseconds.";
    FileDeleteDelayMs = 13, "file.delete.delay.ms", Long(0, LONG_MAX), "60000",
        Some("log.segment.delete.delay.ms"),
        "Accepted; partitions have no segment files of their own.";
    FlushMessages = 14, "flush.messages", Long(1, LONG_MAX), "9223372036854775807",
        Some("log.flush.interval.messages"),
        "Accepted; acknowledged records are on disk in any case (see telpher.durability).";
    FlushMs = 15, "flush.ms", Long(0, LONG_MAX), "9223372036854775807",
        Some("log.flush.interval.ms"),
        "Accepted; acknowledged records are on disk in any case (see telpher.durability).";
    FollowerThrottledReplicas = 16, "follower.replication.throttled.replicas", Replicas, "",
        None,
        "Accepted; there is one broker, and no replication between brokers.";
    IndexIntervalBytes = 17, "index.interval.bytes", Int { range: (0, INT_MAX), or: None }, "4096",
        Some("log.index.interval.bytes"),
        "Accepted; the node sizes its index itself.";
    LeaderThrottledReplicas = 18, "leader.replication.throttled.replicas", Replicas, "",
        None,
        "Accepted; there is one broker, and no replication between brokers.";
    LocalRetentionBytes = 19, "local.retention.bytes", Long(-2, LONG_MAX), "-2",
        Some("log.local.retention.bytes"),
        "Accepted; there is no remote storage.";
    LocalRetentionMs = 20, "local.retention.ms", Long(-2, LONG_MAX), "-2",
        Some("log.local.retention.ms"),
        "Accepted; there is no remote storage.";
    MaxCompactionLagMs = 21, "max.compaction.lag.ms", Long(1, LONG_MAX), "9223372036854775807",
        Some("log.cleaner.max.compaction.lag.ms"),
        "A record is compacted after this time at the latest, in milliseconds, however little is new.";
    MaxMessageBytes = 4, "max.message.bytes", Int { range: (0, INT_MAX), or: None }, "1048588",
        Some("message.max.bytes"),
        "The largest record batch that is accepted, in bytes, after compression.";
    MessageDownconversion = 22, "message.downconversion.enable", Flag, "true",
        None,
        "Accepted for old tools (Kafka 4 has no such key); old message formats are not served.";
    MessageTimestampAfterMaxMs = 23, "message.timestamp.after.max.ms", Long(0, LONG_MAX), "3600000",
        Some("log.message.timestamp.after.max.ms"),
        "How far a record's CreateTime may be ahead of the node's clock, in milliseconds.";
    MessageTimestampBeforeMaxMs = 24, "message.timestamp.before.max.ms", Long(0, LONG_MAX),
        "9223372036854775807",
        Some("log.message.timestamp.before.max.ms"),
        "How far a record's CreateTime may be behind the node's clock, in milliseconds.";
    MessageTimestampType = 5, "message.timestamp.type", Word(&["CreateTime", "LogAppendTime"]),
        "CreateTime",
        Some("log.message.timestamp.type"),
        "CreateTime: records keep the producer's time; LogAppendTime: they get that of the append.";
    MinCleanableDirtyRatio = 25, "min.cleanable.dirty.ratio", Ratio, "0.5",
        Some("log.cleaner.min.cleanable.ratio"),
        "The share of new bytes, from 0 to 1, from which on a partition is compacted.";
    MinCompactionLagMs = 26, "min.compaction.lag.ms", Long(0, LONG_MAX), "0",
        Some("log.cleaner.min.compaction.lag.ms"),
        "How long a record stays uncompacted at least, in milliseconds.";
    MinInsyncReplicas = 27, "min.insync.replicas", Int { range: (1, INT_MAX), or: None }, "1",
        Some("min.insync.replicas"),
        "Accepted; acks=all is answered when the disks of a quorum of the members have the records.";
    Preallocate = 28, "preallocate", Flag, "false",
        Some("log.preallocate"),
        "Accepted; the write-ahead log preallocates its segments.";
    RemoteLogCopyDisable = 29, "remote.log.copy.disable", Flag, "false",
        None,
        "Accepted; there is no remote storage.";
    RemoteLogDeleteOnDisable = 30, "remote.log.delete.on.disable", Flag, "false",
        None,
        "Accepted; there is no remote storage.";
    RemoteStorageEnable = 31, "remote.storage.enable", Word(&["false"]), "false",
        None,
        "false; there is no remote storage.";
    RetentionBytes = 6, "retention.bytes", Long(-1, LONG_MAX), "-1",
        Some("log.retention.bytes"),
        "How many bytes of a partition are kept where cleanup.policy has delete; -1 is no limit.";
    RetentionMs = 7, "retention.ms", Long(-1, LONG_MAX), "604800000",
        Some("log.retention.ms"),
        "How long records are kept where cleanup.policy has delete, in milliseconds; -1 is no limit.";
    // Below 14 bytes Kafka's own segments do not hold a batch's header.
    SegmentBytes = 8, "segment.bytes", Int { range: (14, INT_MAX), or: None }, "1073741824",
        Some("log.segment.bytes"),
        "Accepted; the write-ahead log's segments are shared by all partitions (journal.segment_size).";
    SegmentIndexBytes = 32, "segment.index.bytes", Int { range: (4, INT_MAX), or: None }, "10485760",
        Some("log.index.size.max.bytes"),
        "Accepted; the node sizes its index itself.";
    SegmentJitterMs = 33, "segment.jitter.ms", Long(0, LONG_MAX), "0",
        Some("log.roll.jitter.ms"),
        "Accepted; partitions have no segment files of their own.";
    SegmentMs = 34, "segment.ms", Long(1, LONG_MAX), "604800000",
        Some("log.roll.ms"),
        "After this time the newest records of a partition may be compacted too, in milliseconds.";
    Durability = 9, "telpher.durability", Word(&["disk", "memory"]), "disk",
        None,
        "disk: records are acknowledged and shown when they are on disk; memory: at once.";
    UncleanLeaderElection = 35, "unclean.leader.election.enable", Flag, "false",
        Some("unclean.leader.election.enable"),
        "Accepted; there is one broker, and no election.";
}

impl Key {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the key of this name.
    pub fn parse(name: &str) -> Result<Self, BadConfig> {
        let key = Self::ALL.iter().find(|it| it.name() == name);
        key.copied().ok_or_else(|| BadConfig::Key {
            key: name.chars().take(100).collect(),
        })
    }

    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| *it as u8 == number)
    }

    /// Returns the default value.
    pub fn default(self) -> &'static str {
        self.row().default
    }

    /// Returns the type of its values.
    pub fn kind(self) -> Kind {
        self.row().values.kind()
    }

    /// Returns the broker configuration from which Kafka takes the default of this key, if there is
    /// one.
    pub fn broker_name(self) -> Option<&'static str> {
        self.row().broker_name
    }

    /// Returns one sentence about the effect of the key.
    pub fn documentation(self) -> &'static str {
        self.row().documentation
    }

    /// Returns whether Kafka 4 has the key. Descriptions show other keys only where they are set.
    pub fn is_current(self) -> bool {
        self != Self::MessageDownconversion
    }

    pub(super) fn expects(self) -> String {
        self.row().values.to_string()
    }

    pub(super) fn check(self, value: &str) -> Result<(), BadConfig> {
        match self.row().values.has(value) {
            true => Ok(()),
            false => Err(BadConfig::Value {
                key: self,
                value: value.chars().take(100).collect(),
            }),
        }
    }
}

/// Returns the names of all keys, for an error.
pub(super) fn names() -> String {
    let names: Vec<_> = Key::ALL.iter().map(|key| key.name()).collect();
    names.join(", ")
}
