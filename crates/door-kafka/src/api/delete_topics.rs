//! DeleteTopics: deletes topics with all their records, by name or by id.

use kafka::ErrorCode;
use kafka::delete_topics::{Request, Response, Topic, TopicResponse};
use platform::Pending;
use topic_service::{AdminError, TopicRef};
use topics::{Topic as About, TopicId};

use super::uuid;
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::reply::{Answer, Tag};

/// From this version topics may be named by id.
const IDS_FROM: i16 = 6;

/// The error for an unknown name; an unknown id has another one.
const UNKNOWN: ErrorCode = ErrorCode::UnknownTopicOrPartition;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let halted = client.check_halt().err();
    let asked: Vec<_> = match tag.version {
        IDS_FROM.. => request.topics,
        _ => {
            let names = request.topic_names.into_iter();
            let topic = |name| Topic {
                name: Some(name),
                ..Topic::default()
            };
            names.map(topic).collect()
        }
    };
    let deleting: Vec<_> = asked
        .into_iter()
        .map(|topic| {
            let deleting = match (&topic.name, topic.topic_id) {
                (Some(name), id) if id.is_zero() => Some(TopicRef::Name(name)),
                (None, id) if !id.is_zero() => Some(TopicRef::Id(TopicId(id.0))),
                _ => None,
            };
            let missing = || {
                let message = "a topic needs either a name or an id";
                Failed::new(ErrorCode::InvalidRequest, message)
            };
            let deleting = deleting.ok_or_else(missing).and_then(|topic| {
                match &halted {
                    Some(halted) => return Err(halted.clone()),
                    None => check(client, topic)?,
                }
                Ok(topics.delete(topic))
            });
            (topic, deleting)
        })
        .collect();
    let deadline = Deadline::asked(request.timeout_ms).for_disk();
    tag.later(async move {
        let mut response = Response::default();
        for (topic, deleting) in deleting {
            response
                .responses
                .push(shown(topic, deleting, deadline).await);
        }
        response
    })
}

/// Checks that the client may delete the topic. A missing topic passes, so that the client learns
/// that it does not exist.
fn check(client: &Client, topic: TopicRef<'_>) -> Result<(), Failed> {
    match client.topics().find(topic) {
        Some(found) => client.check_topic(&found.about().name),
        None => Ok(()),
    }
}

async fn shown(
    topic: Topic,
    deleting: Result<Pending<About, AdminError>, Failed>,
    deadline: Deadline,
) -> TopicResponse {
    let deleted = match deleting {
        Ok(deleting) => deadline.outcome(deleting).await,
        Err(failed) => return refused(topic, failed),
    };
    match deleted {
        Ok(about) => TopicResponse {
            topic_id: uuid(about.id),
            name: Some(about.name),
            ..TopicResponse::default()
        },
        Err(failed) if failed.code == UNKNOWN && topic.name.is_none() => {
            let code = ErrorCode::UnknownTopicId;
            refused(topic, Failed { code, ..failed })
        }
        Err(failed) => refused(topic, failed),
    }
}

fn refused(topic: Topic, failed: Failed) -> TopicResponse {
    TopicResponse {
        name: topic.name,
        topic_id: topic.topic_id,
        error_code: failed.code,
        error_message: Some(failed.message),
    }
}
