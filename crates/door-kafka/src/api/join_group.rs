//! JoinGroup: a member joins a consumer group; answered when all members have joined.

use std::sync::Arc;

use kafka::ErrorCode;
use kafka::consumer_protocol::Subscription;
use kafka::join_group::{Member, Protocol as Offered, Request, Response};
use topic_service::GroupError;
use topics::groups::{Join, Joined, Protocol, Refused};

use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::{Coded, Failed};
use crate::reply::{Answer, Tag};

/// From this version a new member gets its id first (KIP-394).
const IDENTITY_FIRST_FROM: i16 = 4;
/// From this version a leader can be told to keep the assignments (KIP-814).
const SKIP_ASSIGNMENT_FROM: i16 = 9;
/// From this version the protocol may be null (KIP-559).
const NO_PROTOCOL_FROM: i16 = 7;
/// The protocol type of consumers, whose metadata contains their topics.
const CONSUMER: &str = "consumer";

pub(crate) fn answer(client: &Client, tag: Tag, client_id: &str, request: Request) -> Answer {
    let session_timeout_ms = u32::try_from(request.session_timeout_ms).unwrap_or(0);
    // Version 0 has one timeout for both.
    let rebalance_timeout_ms = u32::try_from(request.rebalance_timeout_ms);
    let rebalance_timeout_ms = rebalance_timeout_ms.unwrap_or(session_timeout_ms);
    let host = client.host();
    let join = Join {
        group: &request.group_id,
        member: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        client_id,
        client_host: &host,
        session_timeout_ms,
        rebalance_timeout_ms,
        protocol_type: &request.protocol_type,
        topics: topics(&request.protocol_type, &request.protocols),
        protocols: request.protocols.iter().map(protocol).collect(),
        random: 0,
        identity_first: tag.version >= IDENTITY_FIRST_FROM,
        may_skip_assignment: tag.version >= SKIP_ASSIGNMENT_FROM,
    };
    let joining = client.topics().join(join);
    let member = request.member_id;
    let version = tag.version;
    let deadline = Deadline::behind(rebalance_timeout_ms);
    tag.later(async move {
        let joined = deadline.known(joining).await;
        response(joined, member, version)
    })
}

fn protocol(offered: &Offered) -> Protocol {
    Protocol {
        name: offered.name.as_str().into(),
        metadata: Arc::from(&*offered.metadata),
    }
}

/// Returns the topics that a consumer is subscribed to, if it states them.
fn topics(protocol_type: &str, protocols: &[Offered]) -> Option<Vec<Box<str>>> {
    if protocol_type != CONSUMER {
        return None;
    }
    let first = &protocols.first()?.metadata;
    let topics = Subscription::decode(first).ok()?.topics;
    Some(topics.into_iter().map(String::into_boxed_str).collect())
}

fn response(
    told: Result<Result<Joined, GroupError>, Failed>,
    member_id: String,
    version: i16,
) -> Response {
    match told {
        Ok(Ok(joined)) => joined_as(joined),
        // This error contains the new member id.
        Ok(Err(GroupError::Refused(Refused::MemberIdRequired { member }))) => {
            refused(ErrorCode::MemberIdRequired, member.to_string(), version)
        }
        Ok(Err(error)) => refused(error.code(), member_id, version),
        Err(failed) => refused(failed.code, member_id, version),
    }
}

pub(crate) fn refused(error_code: ErrorCode, member_id: String, version: i16) -> Response {
    Response {
        error_code,
        // In versions where it may not be null, it is empty.
        protocol_name: (version < NO_PROTOCOL_FROM).then(String::new),
        member_id,
        ..Response::default()
    }
}

fn joined_as(joined: Joined) -> Response {
    let members = joined.members.into_iter().map(|member| Member {
        member_id: member.member.to_string(),
        group_instance_id: member.instance.map(String::from),
        metadata: member.metadata.to_vec().into(),
    });
    Response {
        generation_id: joined.generation,
        protocol_type: Some(joined.protocol_type.into()),
        protocol_name: Some(joined.protocol.into()),
        leader: joined.leader.to_string(),
        skip_assignment: joined.skip_assignment,
        member_id: joined.member.to_string(),
        members: members.collect(),
        ..Response::default()
    }
}
