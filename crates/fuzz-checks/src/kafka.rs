//! Kafka messages from any bytes as the body of any request and answer in any version: nothing
//! panics, and what decodes encodes to a message that decodes to the same. Any bytes as a stream: the
//! same frames, whole or byte by byte.

use bytes::{Bytes, BytesMut};
use kafka::consumer_protocol::{Assignment, Subscription};
use kafka::{API_KEYS, ApiKey, Request};

macro_rules! apis {
    ($($name:ident $module:ident),* $(,)?) => {
        fn request(frame: &Bytes) {
            let Ok((header, request)) = kafka::decode_request(frame) else { return };
            let (version, id) = (header.version, header.correlation_id);
            let mut out = Vec::new();
            let written = match &request {
                $( Request::$name(request) => {
                    kafka::encode_request(&mut out, version, id, header.client_id, request)
                } )*
            };
            written.expect("a decoded message fits into a frame");
            let again = Bytes::from(out).slice(4..);
            assert_eq!(kafka::decode_request(&again), Ok((header, request)));
        }

        fn response(key: ApiKey, frame: &Bytes, version: i16) {
            match key {
                $( ApiKey::$name => {
                    let read = kafka::decode_response::<kafka::$module::Request>;
                    let Ok((id, response)) = read(frame, version) else { return };
                    let mut out = Vec::new();
                    kafka::encode_response(&mut out, version, id, &response)
                        .expect("a decoded message fits into a frame");
                    // A refusal is read in version 0, independent of the requested version.
                    if let Ok(again) = read(&Bytes::from(out).slice(4..), version) {
                        assert_eq!(again, (id, response));
                    } else {
                        assert_eq!(key, ApiKey::ApiVersions);
                    }
                } )*
            }
        }
    };
}

apis! {
    Produce produce, Fetch fetch, ListOffsets list_offsets, Metadata metadata,
    OffsetCommit offset_commit, OffsetFetch offset_fetch, FindCoordinator find_coordinator,
    JoinGroup join_group, Heartbeat heartbeat, LeaveGroup leave_group, SyncGroup sync_group,
    DescribeGroups describe_groups, ListGroups list_groups, SaslHandshake sasl_handshake,
    ApiVersions api_versions, CreateTopics create_topics, DeleteTopics delete_topics,
    DeleteRecords delete_records, InitProducerId init_producer_id,
    OffsetForLeaderEpoch offset_for_leader_epoch, AddPartitionsToTxn add_partitions_to_txn,
    AddOffsetsToTxn add_offsets_to_txn, EndTxn end_txn, WriteTxnMarkers write_txn_markers,
    TxnOffsetCommit txn_offset_commit, DescribeAcls describe_acls,
    DescribeConfigs describe_configs, AlterConfigs alter_configs,
    DescribeLogDirs describe_log_dirs, SaslAuthenticate sasl_authenticate,
    CreatePartitions create_partitions, DeleteGroups delete_groups,
    IncrementalAlterConfigs incremental_alter_configs, OffsetDelete offset_delete,
    DescribeClientQuotas describe_client_quotas,
    DescribeUserScramCredentials describe_user_scram_credentials,
    AlterUserScramCredentials alter_user_scram_credentials,
    DescribeCluster describe_cluster, DescribeProducers describe_producers,
    DescribeTransactions describe_transactions, ListTransactions list_transactions,
    DescribeTopicPartitions describe_topic_partitions,
    ElectLeaders elect_leaders,
    AlterPartitionReassignments alter_partition_reassignments,
    ListPartitionReassignments list_partition_reassignments,
    DescribeQuorum describe_quorum,
    ConsumerGroupHeartbeat consumer_group_heartbeat,
    ListConfigResources list_config_resources,
}

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let Some((&[key, version], body)) = input.split_first_chunk() else {
        return;
    };
    let key = API_KEYS[usize::from(key) % API_KEYS.len()];
    let version = i16::from(version) % (key.api().version_max + 2);
    let head = [key.code().to_be_bytes(), version.to_be_bytes()].concat();
    request(&[&head, &[0, 0, 0, 1, 0xff, 0xff][..], body].concat().into());
    if key.api().serves(version) {
        response(key, &[&[0, 0, 0, 1][..], body].concat().into(), version);
    }
    let body = Bytes::copy_from_slice(body);
    let _ = (Subscription::decode(&body), Assignment::decode(&body));
    assert_eq!(
        frames(body.chunks(1)),
        frames(body.chunks(body.len().max(1)))
    );
}

fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Option<Bytes>> {
    let mut arrived = BytesMut::new();
    let mut frames = Vec::new();
    for piece in pieces {
        arrived.extend_from_slice(piece);
        loop {
            match kafka::take_frame(&mut arrived, 64) {
                Ok(Some(frame)) => frames.push(Some(frame)),
                Ok(None) => break,
                Err(_) => {
                    frames.push(None);
                    return frames;
                }
            }
        }
    }
    frames
}
