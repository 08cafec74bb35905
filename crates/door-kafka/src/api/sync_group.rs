//! SyncGroup: returns a member's assignment; the leader sends the assignments of all.

use kafka::sync_group::{Request, Response};
use topics::groups::{Caller, Synchronize};

use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: &Request) -> Answer {
    let assignments: Vec<_> = request
        .assignments
        .iter()
        .map(|it| (it.member_id.as_str(), &*it.assignment))
        .collect();
    let ask = Synchronize {
        caller: Caller {
            group: &request.group_id,
            member: &request.member_id,
            instance: request.group_instance_id.as_deref(),
            generation: request.generation_id,
        },
        protocol_type: request.protocol_type.as_deref(),
        protocol: request.protocol_name.as_deref(),
        assignments: &assignments,
    };
    let syncing = client.topics().sync(&ask);
    let deadline = Deadline::usual();
    tag.later(async move {
        match deadline.outcome(syncing).await {
            Ok(synced) => Response {
                protocol_type: Some(synced.protocol_type.into()),
                protocol_name: Some(synced.protocol.into()),
                assignment: synced.assignment.to_vec().into(),
                ..Response::default()
            },
            Err(failed) => Response {
                error_code: failed.code,
                ..Response::default()
            },
        }
    })
}
