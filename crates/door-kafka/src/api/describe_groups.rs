//! DescribeGroups: describes groups and their members.

use kafka::ErrorCode;
use kafka::describe_groups::{Group, Member, Request, Response};
use topics::groups::{Described, Description};

use super::authorized;
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::reply::{Answer, Tag};

/// The state of a missing group.
const DEAD: &str = "Dead";
/// From this version a missing group is an error (KIP-1043).
const NOT_FOUND_FROM: i16 = 6;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics().clone();
    let deadline = Deadline::usual();
    tag.later(async move {
        let mut response = Response::default();
        for group_id in request.groups {
            let described = deadline.outcome(topics.describe_group(&group_id)).await;
            let mut group = shown(group_id, described, tag.version);
            if !group.error_code.is_error() {
                let is_asked = request.include_authorized_operations;
                group.authorized_operations = authorized::on_group(is_asked);
            }
            response.groups.push(group);
        }
        response
    })
}

fn shown(group_id: String, described: Result<Option<Description>, Failed>, version: i16) -> Group {
    let group = Group {
        group_id,
        ..Group::default()
    };
    match described {
        Ok(Some(it)) => Group {
            group_state: it.state.name().to_owned(),
            protocol_type: it.protocol_type.into(),
            protocol_data: it.protocol.into(),
            members: it.members.into_iter().map(member).collect(),
            ..group
        },
        Ok(None) if version >= NOT_FOUND_FROM => Group {
            error_code: ErrorCode::GroupIdNotFound,
            error_message: Some(format!("Group {} not found.", group.group_id)),
            group_state: DEAD.to_owned(),
            ..group
        },
        Ok(None) => Group {
            group_state: DEAD.to_owned(),
            ..group
        },
        Err(failed) => Group {
            error_code: failed.code,
            error_message: Some(failed.message),
            ..group
        },
    }
}

fn member(it: Described) -> Member {
    Member {
        member_id: it.member.to_string(),
        group_instance_id: it.instance.map(String::from),
        client_id: it.client_id.into(),
        client_host: it.client_host.into(),
        member_metadata: it.metadata.to_vec().into(),
        member_assignment: it.assignment.to_vec().into(),
    }
}
