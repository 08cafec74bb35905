//! LeaveGroup: removes members; from version 3 many at once, each with its own result.

use kafka::ErrorCode;
use kafka::leave_group::{Member, MemberResponse, Request, Response};
use topics::groups::Leaver;

use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::of_refused;
use crate::reply::{Answer, Tag};

/// From this version a request contains many members (KIP-345).
const BATCHED_FROM: i16 = 3;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    if request.group_id.is_empty() {
        return tag.now(Response {
            error_code: ErrorCode::InvalidGroupId,
            ..Response::default()
        });
    }
    let is_batched = tag.version >= BATCHED_FROM;
    let members = match is_batched {
        true => request.members,
        false => vec![Member {
            member_id: request.member_id,
            ..Member::default()
        }],
    };
    let leavers: Vec<_> = members.iter().map(leaver).collect();
    let leaving = client.topics().leave(&request.group_id, &leavers);
    let deadline = Deadline::usual();
    tag.later(async move {
        let left = match deadline.outcome(leaving).await {
            Ok(left) => left,
            Err(failed) => {
                return Response {
                    error_code: failed.code,
                    ..Response::default()
                };
            }
        };
        let mut codes = left
            .iter()
            .map(|left| left.as_ref().map_or_else(of_refused, |()| ErrorCode::None));
        if !is_batched {
            return Response {
                error_code: codes.next().unwrap_or_default(),
                ..Response::default()
            };
        }
        let answers = members.into_iter().zip(codes);
        Response {
            members: answers
                .map(|(member, code)| told_to(member, code))
                .collect(),
            ..Response::default()
        }
    })
}

fn leaver(member: &Member) -> Leaver<'_> {
    Leaver {
        member: &member.member_id,
        instance: member.group_instance_id.as_deref(),
    }
}

fn told_to(member: Member, error_code: ErrorCode) -> MemberResponse {
    MemberResponse {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        error_code,
    }
}
