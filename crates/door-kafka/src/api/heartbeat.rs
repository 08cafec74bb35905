//! Heartbeat: keeps a member alive, and tells it whether its group rebalances.

use kafka::heartbeat::{Request, Response};
use topics::groups::Caller;

use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::code_of;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: &Request) -> Answer {
    let beating = client.topics().heartbeat(Caller {
        group: &request.group_id,
        member: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id,
    });
    let deadline = Deadline::usual();
    tag.later(async move {
        Response {
            error_code: code_of(&deadline.outcome(beating).await),
            ..Response::default()
        }
    })
}
