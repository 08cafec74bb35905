//! DeleteGroups: deletes groups without members, and their committed offsets.

use kafka::delete_groups::{GroupResponse, Request, Response};

use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::code_of;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let deleting = request.groups_names.into_iter().map(|group_id| {
        let deleting = topics.delete_group(&group_id);
        (group_id, deleting)
    });
    let deleting: Vec<_> = deleting.collect();
    let deadline = Deadline::usual();
    tag.later(async move {
        let mut response = Response::default();
        for (group_id, deleting) in deleting {
            response.results.push(GroupResponse {
                group_id,
                error_code: code_of(&deadline.outcome(deleting).await),
            });
        }
        response
    })
}
