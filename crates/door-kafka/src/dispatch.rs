//! Dispatch of requests to the handlers of their APIs.

use bytes::Bytes;
use kafka::{ApiKey, Request, RequestError};

use super::api;
use super::client::Client;
use super::metrics;
use super::outcome::{Fatal, Handled};
use super::postponed::when_resumed;
use super::reply::{Answer, Reply, Tag};

/// Handles a request.
pub(super) fn dispatch(client: &mut Client, frame: &Bytes) -> Result<Handled, Fatal> {
    let (header, request) = match kafka::decode_request(frame) {
        Ok(decoded) => decoded,
        Err(error) => return refuse(&error).map(Handled::Answer),
    };
    if !client.is_admitted() && !is_for_strangers(header.key) {
        client.count_refusal();
        let name = header.key.api().name;
        return Err(Fatal::new(format!(
            "{name} before the client was authenticated"
        )));
    }
    metrics::count_request(client.topics(), header.key);
    client.begin_span(&header, &request);
    let tag = Tag::of(&header);
    Ok(Handled::Answer(match request {
        Request::Produce(it) => return api::produce::handle(client, tag, it),
        Request::Fetch(it) => api::fetch::answer(client, tag, it),
        Request::ListOffsets(it) => api::list_offsets::answer(client, tag, it),
        Request::Metadata(it) => tag.now(api::metadata::answer(client, tag.version, &it)),
        Request::OffsetCommit(it) => api::offset_commit::answer(client, tag, it),
        Request::OffsetFetch(it) => api::offset_fetch::answer(client, tag, it),
        Request::FindCoordinator(it) => {
            tag.now(api::find_coordinator::answer(client, tag.version, it))
        }
        Request::JoinGroup(it) => {
            let client_id = header.client_id.unwrap_or_default();
            api::join_group::answer(client, tag, client_id, it)
        }
        Request::Heartbeat(it) => api::heartbeat::answer(client, tag, &it),
        Request::LeaveGroup(it) => api::leave_group::answer(client, tag, it),
        Request::SyncGroup(it) => api::sync_group::answer(client, tag, &it),
        Request::DescribeGroups(it) => api::describe_groups::answer(client, tag, it),
        Request::ListGroups(it) => api::list_groups::answer(client, tag, it),
        Request::SaslHandshake(it) => {
            tag.now(api::sasl_handshake::answer(client, tag.version, &it))
        }
        Request::ApiVersions(it) => {
            let is_clustered = client.topics().membership().is_clustered();
            tag.now(api::api_versions::answer(is_clustered, &it, tag.version))
        }
        Request::CreateTopics(it) => {
            let change = move |client: &Client| api::create_topics::answer(client, tag, it);
            return Ok(when_resumed(client, change));
        }
        Request::DeleteTopics(it) => {
            let change = move |client: &Client| api::delete_topics::answer(client, tag, it);
            return Ok(when_resumed(client, change));
        }
        Request::DeleteRecords(it) => api::delete_records::answer(client, tag, it),
        Request::InitProducerId(it) => api::init_producer_id::answer(client, tag, &it),
        Request::OffsetForLeaderEpoch(it) => {
            tag.now(api::offset_for_leader_epoch::answer(client, it))
        }
        Request::AddPartitionsToTxn(it) => api::add_partitions_to_txn::answer(client, tag, it),
        Request::AddOffsetsToTxn(it) => api::add_offsets_to_txn::answer(client, tag, &it),
        Request::EndTxn(it) => api::end_txn::answer(client, tag, &it),
        Request::WriteTxnMarkers(it) => api::write_txn_markers::answer(client, tag, it),
        Request::TxnOffsetCommit(it) => api::txn_offset_commit::answer(client, tag, it),
        Request::DescribeAcls(_) => tag.now(api::describe_acls::answer()),
        Request::DescribeConfigs(it) => tag.now(api::describe_configs::answer(client, it)),
        Request::AlterConfigs(it) => {
            let change = move |client: &Client| api::alter_configs::answer(client, tag, it);
            return Ok(when_resumed(client, change));
        }
        Request::DescribeLogDirs(it) => tag.now(api::describe_log_dirs::answer(client, it)),
        Request::SaslAuthenticate(it) => {
            return Ok(api::sasl_authenticate::handle(client, tag, &it));
        }
        Request::CreatePartitions(it) => {
            let change = move |client: &Client| api::create_partitions::answer(client, tag, it);
            return Ok(when_resumed(client, change));
        }
        Request::DeleteGroups(it) => api::delete_groups::answer(client, tag, it),
        Request::ElectLeaders(it) => tag.now(api::elect_leaders::answer(client, it)),
        Request::AlterPartitionReassignments(it) => {
            tag.now(api::alter_partition_reassignments::answer(client, it))
        }
        Request::ListPartitionReassignments(_) => {
            tag.now(api::list_partition_reassignments::answer())
        }
        Request::IncrementalAlterConfigs(it) => {
            let change =
                move |client: &Client| api::incremental_alter_configs::answer(client, tag, it);
            return Ok(when_resumed(client, change));
        }
        Request::OffsetDelete(it) => api::offset_delete::answer(client, tag, it),
        Request::DescribeClientQuotas(_) => tag.now(api::describe_client_quotas::answer()),
        Request::DescribeUserScramCredentials(it) => {
            tag.now(api::describe_user_scram_credentials::answer(client, it))
        }
        Request::AlterUserScramCredentials(it) => {
            let change =
                move |client: &Client| api::alter_user_scram_credentials::answer(client, tag, it);
            return Ok(when_resumed(client, change));
        }
        Request::DescribeQuorum(it) => tag.now(api::describe_quorum::answer(client, it)),
        Request::ConsumerGroupHeartbeat(_) => tag.now(api::consumer_group_heartbeat::answer()),
        Request::ListConfigResources(it) => {
            tag.now(api::list_config_resources::answer(client, tag.version, &it))
        }
        Request::DescribeCluster(it) => tag.now(api::describe_cluster::answer(client, &it)),
        Request::DescribeProducers(it) => tag.now(api::describe_producers::answer(client, it)),
        Request::DescribeTransactions(it) => {
            tag.now(api::describe_transactions::answer(client, it))
        }
        Request::ListTransactions(it) => tag.now(api::list_transactions::answer(client, &it)),
        Request::DescribeTopicPartitions(it) => {
            tag.now(api::describe_topic_partitions::answer(client, it))
        }
    }))
}

/// Returns whether a client may send this request before it is authenticated.
fn is_for_strangers(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::ApiVersions | ApiKey::SaslHandshake | ApiKey::SaslAuthenticate
    )
}

/// Answers an unsupported ApiVersions; on any other invalid request clients expect the end of the
/// connection.
fn refuse(error: &RequestError) -> Result<Answer, Fatal> {
    match *error {
        RequestError::UnsupportedVersion {
            key: ApiKey::ApiVersions,
            correlation_id,
            ..
        } => Ok(Answer::Now(Reply::of_future_versions(correlation_id))),
        _ => Err(Fatal::new(error.to_string())),
    }
}
