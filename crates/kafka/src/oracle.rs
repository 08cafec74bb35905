//! Comparison of every message in every version with the `kafka-protocol` crate, which is generated
//! from Kafka's schemas: each side decodes what the other side encodes, with equal fields.

use std::cell::RefCell;
use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::api::{API_KEYS, ApiKey};
use crate::error_code::ErrorCode;
use crate::field::Field;
use crate::produce;
use crate::reader::{DecodeError, Reader};
use crate::sample::{Sample, Source};
use crate::writer::Writer;

/// A message type with its counterpart in `kafka-protocol`.
trait Twin: Field + Sample + Debug + PartialEq {
    const KEY: ApiKey;
    type Theirs: Decodable + Encodable + Debug;
}

/// A property of every message in every version.
trait Check {
    fn check<Ours: Twin>(&self, version: i16);
}

macro_rules! twins {
    ($($name:ident $module:ident $request:ident $response:ident;)*) => {
        $(
            impl Twin for crate::$module::Request {
                const KEY: ApiKey = ApiKey::$name;
                type Theirs = theirs::$request;
            }

            impl Twin for crate::$module::Response {
                const KEY: ApiKey = ApiKey::$name;
                type Theirs = theirs::$response;
            }
        )*

        fn for_each_message(check: &impl Check) {
            $(
                for version in versions(ApiKey::$name) {
                    check.check::<crate::$module::Request>(version);
                    check.check::<crate::$module::Response>(version);
                }
            )*
        }
    };
}

twins! {
    Produce produce ProduceRequest ProduceResponse;
    Fetch fetch FetchRequest FetchResponse;
    ListOffsets list_offsets ListOffsetsRequest ListOffsetsResponse;
    Metadata metadata MetadataRequest MetadataResponse;
    OffsetCommit offset_commit OffsetCommitRequest OffsetCommitResponse;
    OffsetFetch offset_fetch OffsetFetchRequest OffsetFetchResponse;
    FindCoordinator find_coordinator FindCoordinatorRequest FindCoordinatorResponse;
    JoinGroup join_group JoinGroupRequest JoinGroupResponse;
    Heartbeat heartbeat HeartbeatRequest HeartbeatResponse;
    LeaveGroup leave_group LeaveGroupRequest LeaveGroupResponse;
    SyncGroup sync_group SyncGroupRequest SyncGroupResponse;
    DescribeGroups describe_groups DescribeGroupsRequest DescribeGroupsResponse;
    ListGroups list_groups ListGroupsRequest ListGroupsResponse;
    SaslHandshake sasl_handshake SaslHandshakeRequest SaslHandshakeResponse;
    ApiVersions api_versions ApiVersionsRequest ApiVersionsResponse;
    CreateTopics create_topics CreateTopicsRequest CreateTopicsResponse;
    DeleteTopics delete_topics DeleteTopicsRequest DeleteTopicsResponse;
    DeleteRecords delete_records DeleteRecordsRequest DeleteRecordsResponse;
    InitProducerId init_producer_id InitProducerIdRequest InitProducerIdResponse;
    OffsetForLeaderEpoch offset_for_leader_epoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse;
    AddPartitionsToTxn add_partitions_to_txn AddPartitionsToTxnRequest AddPartitionsToTxnResponse;
    AddOffsetsToTxn add_offsets_to_txn AddOffsetsToTxnRequest AddOffsetsToTxnResponse;
    EndTxn end_txn EndTxnRequest EndTxnResponse;
    WriteTxnMarkers write_txn_markers WriteTxnMarkersRequest WriteTxnMarkersResponse;
    TxnOffsetCommit txn_offset_commit TxnOffsetCommitRequest TxnOffsetCommitResponse;
    DescribeAcls describe_acls DescribeAclsRequest DescribeAclsResponse;
    DescribeConfigs describe_configs DescribeConfigsRequest DescribeConfigsResponse;
    AlterConfigs alter_configs AlterConfigsRequest AlterConfigsResponse;
    DescribeLogDirs describe_log_dirs DescribeLogDirsRequest DescribeLogDirsResponse;
    SaslAuthenticate sasl_authenticate SaslAuthenticateRequest SaslAuthenticateResponse;
    CreatePartitions create_partitions CreatePartitionsRequest CreatePartitionsResponse;
    DeleteGroups delete_groups DeleteGroupsRequest DeleteGroupsResponse;
    ElectLeaders elect_leaders ElectLeadersRequest ElectLeadersResponse;
    IncrementalAlterConfigs incremental_alter_configs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse;
    AlterPartitionReassignments alter_partition_reassignments AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse;
    ListPartitionReassignments list_partition_reassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse;
    OffsetDelete offset_delete OffsetDeleteRequest OffsetDeleteResponse;
    DescribeClientQuotas describe_client_quotas DescribeClientQuotasRequest DescribeClientQuotasResponse;
    DescribeUserScramCredentials describe_user_scram_credentials DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse;
    AlterUserScramCredentials alter_user_scram_credentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse;
    DescribeQuorum describe_quorum DescribeQuorumRequest DescribeQuorumResponse;
    DescribeCluster describe_cluster DescribeClusterRequest DescribeClusterResponse;
    DescribeProducers describe_producers DescribeProducersRequest DescribeProducersResponse;
    DescribeTransactions describe_transactions DescribeTransactionsRequest DescribeTransactionsResponse;
    ListTransactions list_transactions ListTransactionsRequest ListTransactionsResponse;
    ConsumerGroupHeartbeat consumer_group_heartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse;
    ListConfigResources list_config_resources ListConfigResourcesRequest ListConfigResourcesResponse;
    DescribeTopicPartitions describe_topic_partitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse;
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn our_codec_and_the_reference_codec_read_each_other(entropy in vec(any::<u8>(), 0..2048)) {
        for_each_message(&Agree(&entropy));
    }

    #[test]
    fn a_message_that_ends_early_is_an_error(entropy in vec(any::<u8>(), 0..256)) {
        for_each_message(&PrefixesAreErrors(&entropy));
    }

    #[test]
    fn unknown_tagged_fields_are_skipped(entropy in vec(any::<u8>(), 0..256)) {
        for_each_message(&UnknownIsSkipped(&entropy));
    }

    #[test]
    fn decoded_bytes_encode_to_the_same_value(
        bytes in vec(prop_oneof![Just(0u8), 1..5u8, any::<u8>()], 0..512),
    ) {
        for_each_message(&ReadIsWritten(bytes.into()));
    }
}

struct Agree<'a>(&'a [u8]);

impl Check for Agree<'_> {
    fn check<Ours: Twin>(&self, version: i16) {
        let ours = Ours::sample(&mut Source::new(self.0, version));
        let written = write(&ours, version);
        let expected = Ok(ours);
        assert_eq!(
            read(&written, version),
            expected,
            "{:?} {version}",
            Ours::KEY
        );
        if Ours::KEY == ApiKey::Produce && version < produce::VERSION_MIN {
            return;
        }
        let mut rest = written;
        let theirs = Ours::Theirs::decode(&mut rest, version).unwrap();
        assert!(
            rest.is_empty(),
            "{:?} {version}: {} bytes are left",
            Ours::KEY,
            rest.len()
        );
        assert_same(
            Ours::KEY,
            version,
            &format!("{expected:?}"),
            &format!("Ok({theirs:?})"),
        );
        let mut rewritten = BytesMut::new();
        theirs.encode(&mut rewritten, version).unwrap();
        assert_eq!(
            read(&rewritten.freeze(), version),
            expected,
            "{:?} {version}",
            Ours::KEY
        );
    }
}

struct PrefixesAreErrors<'a>(&'a [u8]);

impl Check for PrefixesAreErrors<'_> {
    fn check<Ours: Twin>(&self, version: i16) {
        let written = write(&Ours::sample(&mut Source::new(self.0, version)), version);
        for size in 0..written.len() {
            let read = read::<Ours>(&written.slice(..size), version);
            assert!(
                read.is_err(),
                "{:?} {version}: {size} of {} bytes",
                Ours::KEY,
                written.len()
            );
        }
    }
}

struct UnknownIsSkipped<'a>(&'a [u8]);

impl Check for UnknownIsSkipped<'_> {
    fn check<Ours: Twin>(&self, version: i16) {
        /// Tag 999 with three bytes, and tag 1000 with none.
        const UNKNOWN: [u8; 10] = [2, 0xe7, 0x07, 3, 1, 2, 3, 0xe8, 0x07, 0];
        // The outermost structure ends with its tagged fields. Only these APIs have known ones
        // there.
        let knows_some = matches!(
            Ours::KEY,
            ApiKey::Produce | ApiKey::Fetch | ApiKey::ApiVersions
        );
        if !Ours::KEY.api().is_flexible(version) || knows_some {
            return;
        }
        let ours = Ours::sample(&mut Source::new(self.0, version));
        let written = write(&ours, version);
        let (none, body) = written.split_last().unwrap();
        assert_eq!(*none, 0, "{:?} {version}", Ours::KEY);
        let with_unknown = [body, &UNKNOWN].concat().into();
        assert_eq!(
            read(&with_unknown, version),
            Ok(ours),
            "{:?} {version}",
            Ours::KEY
        );
    }
}

struct ReadIsWritten(Bytes);

impl Check for ReadIsWritten {
    fn check<Ours: Twin>(&self, version: i16) {
        if let Ok(first) = read::<Ours>(&self.0, version) {
            let again = read(&write(&first, version), version);
            assert_eq!(again, Ok(first), "{:?} {version}", Ours::KEY);
        }
    }
}

fn versions(key: ApiKey) -> std::ops::RangeInclusive<i16> {
    key.api().version_min..=key.api().version_max
}

fn write<T: Twin>(value: &T, version: i16) -> Bytes {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, version, T::KEY.api().is_flexible(version));
    value.write(&mut writer);
    writer.finish().unwrap();
    out.into()
}

fn read<T: Twin>(bytes: &Bytes, version: i16) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes, version, T::KEY.api().is_flexible(version));
    let value = T::read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Asserts equal fields and values. A text that a version lacks is null on our side and may be
/// empty on the other.
fn assert_same(key: ApiKey, version: i16, ours: &str, theirs: &str) {
    let ours = fields(ours);
    let theirs = served(key, fields(theirs));
    assert_eq!(
        ours.len(),
        theirs.len(),
        "{key:?} {version}: {ours:#?} {theirs:#?}"
    );
    for (index, (one, other)) in ours.iter().zip(&theirs).enumerate() {
        let is_absent = one == "None" && other == "\"\"";
        assert!(
            one == other || is_absent,
            "{key:?} {version}: {:#?} {other}",
            &ours[..=index]
        );
    }
}

/// Fields with bytes.
const OPAQUE: &[&str] = &["records:", "auth_bytes:", "salt:", "salted_password:"];

/// Returns the field names and values in a `Debug` output, without type names.
///
/// The other side shows error codes as numbers, shows bytes where ours only counts them, and has a
/// list of unknown tagged fields, which is empty.
fn fields(shown: &str) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    let mut rest = shown;
    while let Some(token) = next_token(&mut rest) {
        let name = fields.last().map_or("", String::as_str);
        let is_type = token.starts_with(char::is_uppercase) && rest.starts_with(" {");
        if is_type || matches!(token, "Ok" | "Some" | "bytes") {
        } else if name == "unknown_tagged_fields:" {
            assert_eq!((token, next_token(&mut rest)), ("{", Some("}")));
            fields.pop();
        } else if name.ends_with("error_code:") {
            let known = token
                .parse()
                .map(|code: i16| format!("{:?}", ErrorCode::from(code)));
            fields.push(known.unwrap_or_else(|_| token.to_owned()));
        } else if OPAQUE.contains(&name) && token != "None" {
            fields.push("opaque".to_owned());
        } else {
            // Field names that are Rust keywords have a leading underscore on the other side.
            fields.push(token.trim_start_matches('_').to_owned());
        }
    }
    fields
}

/// Removes the fields of versions that Kafka 4.1 marks as unstable.
fn served(key: ApiKey, fields: Vec<String>) -> Vec<String> {
    let unstable: &[&str] = match key {
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => &["topic_id:"],
        ApiKey::InitProducerId => &[
            "enable_2_pc:",
            "keep_prepared_txn:",
            "ongoing_txn_producer_id:",
            "ongoing_txn_producer_epoch:",
        ],
        _ => return fields,
    };
    let mut served = Vec::new();
    let mut fields = fields.into_iter();
    while let Some(field) = fields.next() {
        if unstable.contains(&field.as_str()) {
            fields.next();
        } else {
            served.push(field);
        }
    }
    served
}

/// Returns the next token: a name with its colon, a number or word, a text or bytes in quotes, or a
/// bracket.
fn next_token<'a>(rest: &mut &'a str) -> Option<&'a str> {
    *rest = rest.trim_start_matches([' ', ',', '(', ')']);
    let text = *rest;
    let is_word = |character: char| character.is_alphanumeric() || "_-.:".contains(character);
    let quoted = text.strip_prefix('b').unwrap_or(text);
    let size = if let Some(body) = quoted.strip_prefix('"') {
        let mut is_escaped = false;
        let end = body.find(|character| {
            let ends = character == '"' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            ends
        });
        text.len() - body.len() + end? + 1
    } else if text.starts_with(is_word) {
        let size = text
            .find(|character| !is_word(character))
            .unwrap_or(text.len());
        text.find(':')
            .filter(|&colon| colon < size)
            .map_or(size, |colon| colon + 1)
    } else {
        text.chars().next()?.len_utf8()
    };
    let (token, left) = text.split_at(size);
    *rest = left;
    Some(token)
}

/// Collects the messages that were checked.
#[derive(Default)]
struct CheckedMessages(RefCell<Vec<(ApiKey, i16)>>);

impl Check for CheckedMessages {
    fn check<Ours: Twin>(&self, version: i16) {
        self.0.borrow_mut().push((Ours::KEY, version));
    }
}

#[test]
fn every_api_in_the_table_is_compared() {
    let seen = CheckedMessages::default();
    for_each_message(&seen);
    let all = API_KEYS
        .iter()
        .flat_map(|&key| versions(key).map(move |version| (key, version)));
    // Each version occurs twice: request and response.
    let all: Vec<_> = all.flat_map(|message| [message, message]).collect();
    assert_eq!(seen.0.into_inner(), all);
}

#[test]
fn versions_and_headers_are_those_of_kafka() {
    for &key in API_KEYS {
        let ours = key.api();
        let theirs = theirs::ApiKey::try_from(key.code()).unwrap();
        assert_eq!(ours.name, format!("{theirs:?}"));
        let valid = theirs.valid_versions();
        for version in versions(key) {
            if key == ApiKey::Produce && version < produce::VERSION_MIN {
                continue;
            }
            assert!(
                (valid.min..=valid.max).contains(&version),
                "{key:?} {version}"
            );
            let header = 1 + i16::from(ours.is_flexible(version));
            assert_eq!(
                theirs.request_header_version(version),
                header,
                "{key:?} {version}"
            );
            let header = i16::from(ours.has_tagged_response_header(version));
            assert_eq!(
                theirs.response_header_version(version),
                header,
                "{key:?} {version}"
            );
        }
    }
}

#[test]
fn error_codes_and_retriability_match_kafka() {
    for &code in ErrorCode::ALL {
        if let Some(theirs) = kafka_protocol::ResponseError::try_from_code(code.code()) {
            assert_eq!(format!("{code:?}"), format!("{theirs:?}"));
            // Kafka 4.1 makes this code retriable; the crate's list is older.
            let is_newer = code == ErrorCode::ConcurrentTransactions;
            assert_eq!(
                code.is_retriable(),
                theirs.is_retriable() | is_newer,
                "{code:?}"
            );
        } else {
            assert_eq!(code, ErrorCode::None);
        }
    }
}
