//! The one table of what is served: each API's key, its versions, and the first that is flexible.
//!
//! To serve another API: a file in `messages`, its line in `messages.rs`, a row here, and one in
//! `oracle.rs`, without which the tests fail.

use crate::field::Field;
use crate::reader::{DecodeError, Reader};

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// Which API.
    pub key: ApiKey,
    /// Its name in Kafka.
    pub name: &'static str,
    /// The lowest version.
    pub version_min: i16,
    /// The highest version.
    pub version_max: i16,
    /// The first version that writes sizes compactly and has tagged fields.
    pub flexible_min: Option<i16>,
}

impl Api {
    /// Whether a version writes sizes compactly and has tagged fields.
    #[inline]
    pub fn is_flexible(&self, version: i16) -> bool {
        self.flexible_min.is_some_and(|min| min <= version)
    }

    /// Whether a version is served.
    #[inline]
    pub fn serves(&self, version: i16) -> bool {
        (self.version_min..=self.version_max).contains(&version)
    }

    /// Whether a version's answer has tagged fields in its header: that of ApiVersions never has,
    /// since who asks does not know yet what it will be told (KIP-511).
    #[inline]
    pub fn has_tagged_response_header(&self, version: i16) -> bool {
        self.is_flexible(version) && self.key != ApiKey::ApiVersions
    }
}

/// The body of a request.
pub trait RequestBody: Field {
    /// Its API.
    const KEY: ApiKey;
    /// What answers it.
    type Response: ResponseBody;
}

/// The body of an answer.
pub trait ResponseBody: Field {
    /// Its API.
    const KEY: ApiKey;
}

macro_rules! apis {
    ($($name:ident = $code:literal: $module:ident, $min:literal..=$max:literal
        $(, flexible $flexible:literal)?;)*) => {
        /// The number in front of every request.
        #[allow(missing_docs, reason = "the names are Kafka's")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        pub enum ApiKey {
            $( $name = $code, )*
        }

        impl ApiKey {
            /// The API of a number, if it is served.
            pub fn from_code(code: i16) -> Option<Self> {
                match code {
                    $( $code => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// The number on the wire.
            pub fn code(self) -> i16 {
                self as i16
            }

            /// Its row in the table.
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

        /// What is served, by number. Whatever says so elsewhere is made from it.
        pub static API_KEYS: &[ApiKey] = &[$( ApiKey::$name, )*];

        /// A request whose header said which it is.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are Kafka's")]
        pub enum Request {
            $( $name(crate::$module::Request), )*
        }

        impl Request {
            /// Reads the body of an API's request.
            pub(crate) fn read(key: ApiKey, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match key {
                    $( ApiKey::$name => Field::read(reader).map(Self::$name), )*
                }
            }

            /// Which API it belongs to.
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

// Versions are those of Kafka 4.1 that it calls stable. Produce starts at 0, because librdkafka
// before 2.8.1 compresses nothing for a broker that does not claim it (KAFKA-18659); below
// `produce::VERSION_MIN` a request is to be answered with an error. So is SaslHandshake 0, behind which
// bare bytes would follow, in no frame: it stands here because librdkafka does no SCRAM without it. EndTxn 5 and TxnOffsetCommit 5 belong to the second version of
// transactions (KIP-890), which nobody asks for where a broker does not say that it has it.
// ConsumerGroupHeartbeat is advertised so that it can be refused: librdkafka waits for ever for a broker
// that does not claim version 1. franz-go goes on with the classic protocol when it is refused.
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
