//! Limits and defaults of topics.

use topics::Config;

/// Limits and defaults of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether a request that names an unknown topic creates it.
    pub auto_create: bool,
    /// Partitions of a topic that is created without a partition count.
    pub partitions: u32,
    /// Maximum number of partitions of all topics together.
    pub partitions_max: u32,
    /// Maximum number of idempotent producers that each partition remembers.
    pub producers_max: usize,
    /// Time after which an inactive producer is forgotten, in milliseconds.
    pub producer_silent_ms: i64,
    /// Time after which an unused `transactional.id` is forgotten, in milliseconds.
    pub transactional_id_unused_ms: i64,
    /// Maximum transaction timeout that a producer may request, in milliseconds.
    pub transaction_timeout_ms_max: i32,
    /// Minimum time that a record is retained after its append, even if its timestamp is older, in
    /// milliseconds.
    pub retention_check_interval_ms: i64,
    /// Options of consumer groups.
    pub groups: ::topics::groups::Options,
    /// Maximum memory for the keys of one compaction, in bytes.
    pub compaction_size_max: usize,
    /// Maximum memory for batches that are unpacked for readers, all together, in bytes.
    pub unpacked_size_max: u64,
    /// Default topic configuration, where it differs from Kafka's defaults.
    pub defaults: Config,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            auto_create: true,
            partitions: 3,
            partitions_max: 100_000,
            producers_max: 10_000,
            producer_silent_ms: 24 * 3600 * 1000,
            transactional_id_unused_ms: 7 * 24 * 3600 * 1000,
            transaction_timeout_ms_max: 15 * 60 * 1000,
            retention_check_interval_ms: 5 * 60 * 1000,
            groups: ::topics::groups::Options::default(),
            compaction_size_max: 64 << 20,
            unpacked_size_max: 256 << 20,
            defaults: Config::default(),
        }
    }
}
