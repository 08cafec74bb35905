//! ListGroups: lists all groups, or those in given states. All are of the classic type.

use kafka::list_groups::{Group, Request, Response};
use topic_service::GroupView;

use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

const CLASSIC: &str = "classic";

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let listing = client.topics().groups();
    let deadline = Deadline::usual();
    tag.later(async move {
        match deadline.outcome(listing).await {
            Ok(groups) => Response {
                groups: groups
                    .into_iter()
                    .filter(|group| is_wanted(group, &request))
                    .map(shown)
                    .collect(),
                ..Response::default()
            },
            Err(failed) => Response {
                error_code: failed.code,
                ..Response::default()
            },
        }
    })
}

/// An empty filter matches all groups; case is ignored.
fn is_wanted(group: &GroupView, request: &Request) -> bool {
    let among = |words: &[String], word: &str| {
        words.is_empty() || words.iter().any(|it| it.eq_ignore_ascii_case(word))
    };
    among(&request.states_filter, group.state.name()) && among(&request.types_filter, CLASSIC)
}

fn shown(group: GroupView) -> Group {
    Group {
        group_id: group.group.into(),
        protocol_type: group.protocol_type.into(),
        group_state: group.state.name().to_owned(),
        group_type: CLASSIC.to_owned(),
    }
}
