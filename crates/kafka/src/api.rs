//! Table of the supported APIs: key, version range and first flexible version of each.
//!
//! To add an API: a file in `messages`, its line in `messages.rs`, a row here, and a row in
//! `oracle.rs`, without which the tests fail.

use crate::field::Field;
use crate::reader::{DecodeError, Reader};

/// A row of the API table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// API key.
    pub key: ApiKey,
    /// Name in Kafka.
    pub name: &'static str,
    /// Lowest supported version.
    pub version_min: i16,
    /// Highest supported version.
    pub version_max: i16,
    /// First flexible version: compact sizes and tagged fields.
    pub flexible_min: Option<i16>,
}

impl Api {
    /// True if `version` is flexible: compact sizes and tagged fields.
    #[inline]
    pub fn is_flexible(&self, version: i16) -> bool {
        self.flexible_min.is_some_and(|min| min <= version)
    }

    /// True if `version` is supported.
    #[inline]
    pub fn serves(&self, version: i16) -> bool {
        (self.version_min..=self.version_max).contains(&version)
    }

    /// True if the response header of `version` has tagged fields. ApiVersions never has, because
    /// the client does not know the broker's versions yet (KIP-511).
    #[inline]
    pub fn has_tagged_response_header(&self, version: i16) -> bool {
        self.is_flexible(version) && self.key != ApiKey::ApiVersions
    }
}

/// Body of a request.
pub trait RequestBody: Field {
    /// API key.
    const KEY: ApiKey;
    /// Body of the response.
    type Response: ResponseBody;
}

/// Body of a response.
pub trait ResponseBody: Field {
    /// API key.
    const KEY: ApiKey;
}

macro_rules! apis {
    ($($name:ident = $code:literal: $module:ident, $min:literal..=$max:literal
        $(, flexible $flexible:literal)?;)*) => {
        /// Key of an API: the first number of every request.
        #[allow(missing_docs, reason = "the names are Kafka's")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        pub enum ApiKey {
            $( $name = $code, )*
        }

        impl ApiKey {
            /// Returns the API of a key, if it is supported.
            pub fn from_code(code: i16) -> Option<Self> {
                match code {
                    $( $code => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// Returns the key on the wire.
            pub fn code(self) -> i16 {
                self as i16
            }

            /// Returns the row of the table.
            #[inline]
            pub fn api(self) -> &'static Api {
                match self {
                    $( Self::$name => const {
                        &Api {
                            key: ApiKey::$name,
                            name: stringify!($name),
                            version_min: $min,
                            version_max: $max,
                            flexible_min: apis!(@flexible $($flexible)?),
                        }
                    }, )*
                }
            }
        }

        /// Supported APIs by key. All other lists of APIs are made from it.
        pub static API_KEYS: &[ApiKey] = &[$( ApiKey::$name, )*];

        /// A decoded request body.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are Kafka's")]
        pub enum Request {
            $( $name(crate::$module::Request), )*
        }

        impl Request {
            /// Decodes the body of a request.
            pub(crate) fn read(key: ApiKey, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match key {
                    $( ApiKey::$name => Field::read(reader).map(Self::$name), )*
                }
            }

            /// Returns the API of the request.
            pub fn key(&self) -> ApiKey {
                match self {
                    $( Self::$name(_) => ApiKey::$name, )*
                }
            }
        }

        $(
            impl RequestBody for crate::$module::Request {
                const KEY: ApiKey = ApiKey::$name;
                type Response = crate::$module::Response;
            }

            impl ResponseBody for crate::$module::Response {
                const KEY: ApiKey = ApiKey::$name;
            }
        )*
    };
    (@flexible) => { None };
    (@flexible $min:literal) => { Some($min) };
}

// Versions are the stable ones of Kafka 4.1, with these exceptions:
//
// Produce starts at 0, because librdkafka before 2.8.1 does not compress for a broker without it
// (KAFKA-18659); requests below `produce::VERSION_MIN` must be answered with an error.
// SaslHandshake 0 must be answered with an error too, because unframed bytes would follow; it is in
// the table because librdkafka uses no SCRAM without it. EndTxn 5 and TxnOffsetCommit 5 are left
// out: they belong to transactions version 2 (KIP-890), which clients only use with brokers that
// advertise it. ConsumerGroupHeartbeat is advertised so that it can be refused: librdkafka waits for
// ever for a broker that does not claim version 1. franz-go goes on with the classic protocol when it is
// refused.
apis! {
    Produce = 0: produce, 0..=13, flexible 9;
    Fetch = 1: fetch, 4..=18, flexible 12;
    ListOffsets = 2: list_offsets, 1..=10, flexible 6;
    Metadata = 3: metadata, 0..=13, flexible 9;
    OffsetCommit = 8: offset_commit, 2..=9, flexible 8;
    OffsetFetch = 9: offset_fetch, 1..=9, flexible 6;
    FindCoordinator = 10: find_coordinator, 0..=6, flexible 3;
    JoinGroup = 11: join_group, 0..=9, flexible 6;
    Heartbeat = 12: heartbeat, 0..=4, flexible 4;
    LeaveGroup = 13: leave_group, 0..=5, flexible 4;
    SyncGroup = 14: sync_group, 0..=5, flexible 4;
    DescribeGroups = 15: describe_groups, 0..=6, flexible 5;
    ListGroups = 16: list_groups, 0..=5, flexible 3;
    SaslHandshake = 17: sasl_handshake, 0..=1;
    ApiVersions = 18: api_versions, 0..=4, flexible 3;
    CreateTopics = 19: create_topics, 2..=7, flexible 5;
    DeleteTopics = 20: delete_topics, 1..=6, flexible 4;
    DeleteRecords = 21: delete_records, 0..=2, flexible 2;
    InitProducerId = 22: init_producer_id, 0..=5, flexible 2;
    OffsetForLeaderEpoch = 23: offset_for_leader_epoch, 2..=4, flexible 4;
    AddPartitionsToTxn = 24: add_partitions_to_txn, 0..=5, flexible 3;
    AddOffsetsToTxn = 25: add_offsets_to_txn, 0..=4, flexible 3;
    EndTxn = 26: end_txn, 0..=4, flexible 3;
    WriteTxnMarkers = 27: write_txn_markers, 1..=1, flexible 1;
    TxnOffsetCommit = 28: txn_offset_commit, 0..=4, flexible 3;
    DescribeAcls = 29: describe_acls, 1..=3, flexible 2;
    DescribeConfigs = 32: describe_configs, 1..=4, flexible 4;
    AlterConfigs = 33: alter_configs, 0..=2, flexible 2;
    DescribeLogDirs = 35: describe_log_dirs, 1..=4, flexible 2;
    SaslAuthenticate = 36: sasl_authenticate, 0..=2, flexible 2;
    CreatePartitions = 37: create_partitions, 0..=3, flexible 2;
    DeleteGroups = 42: delete_groups, 0..=2, flexible 2;
    ElectLeaders = 43: elect_leaders, 0..=2, flexible 2;
    IncrementalAlterConfigs = 44: incremental_alter_configs, 0..=1, flexible 1;
    AlterPartitionReassignments = 45: alter_partition_reassignments, 0..=1, flexible 0;
    ListPartitionReassignments = 46: list_partition_reassignments, 0..=0, flexible 0;
    OffsetDelete = 47: offset_delete, 0..=0;
    DescribeClientQuotas = 48: describe_client_quotas, 0..=1, flexible 1;
    DescribeUserScramCredentials = 50: describe_user_scram_credentials, 0..=0, flexible 0;
    AlterUserScramCredentials = 51: alter_user_scram_credentials, 0..=0, flexible 0;
    DescribeQuorum = 55: describe_quorum, 0..=2, flexible 0;
    DescribeCluster = 60: describe_cluster, 0..=2, flexible 0;
    DescribeProducers = 61: describe_producers, 0..=0, flexible 0;
    DescribeTransactions = 65: describe_transactions, 0..=0, flexible 0;
    ListTransactions = 66: list_transactions, 0..=2, flexible 0;
    ConsumerGroupHeartbeat = 68: consumer_group_heartbeat, 0..=1, flexible 0;
    ListConfigResources = 74: list_config_resources, 0..=1, flexible 0;
    DescribeTopicPartitions = 75: describe_topic_partitions, 0..=0, flexible 0;
}
