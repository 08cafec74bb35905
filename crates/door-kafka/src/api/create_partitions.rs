//! CreatePartitions: adds partitions to topics.

use kafka::ErrorCode;
use kafka::create_partitions::{Request, Response, Topic, TopicResponse};
use topic_service::{Execution, TopicRef, Topics};

use super::changes::{Changing, begun, execution, outcome};
use crate::brokers::Brokers;
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let brokers = Brokers::of(client);
    let execution = execution(request.validate_only);
    let making = begun(
        request.topics,
        |topic| &topic.name,
        |topic| make(topics, &brokers, topic, execution),
    );
    let deadline = Deadline::asked(request.timeout_ms).for_disk();
    tag.later(async move {
        let mut response = Response::default();
        for (name, making) in making {
            let (error_code, error_message) = outcome(making, deadline).await;
            response.results.push(TopicResponse {
                name,
                error_code,
                error_message,
            });
        }
        response
    })
}

fn make(topics: &Topics, brokers: &Brokers<'_>, topic: &Topic, execution: Execution) -> Changing {
    if let Some(assignments) = &topic.assignments {
        let found = topics.find(TopicRef::Name(&topic.name));
        let now = found.map_or(0, |found| found.about().partitions);
        let new = i64::from(topic.count) - i64::from(now);
        let is_counted = i64::try_from(assignments.len()) == Ok(new);
        if !is_counted
            || !assignments
                .iter()
                .all(|it| brokers.may_replicate(&it.broker_ids))
        {
            let message = format!("each new partition needs {}", brokers.possible_replicas());
            return Err(Failed::new(ErrorCode::InvalidReplicaAssignment, message));
        }
    }
    Ok(topics.set_partitions(&topic.name, topic.count, execution))
}
