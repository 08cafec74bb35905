//! CreateTopics: creates topics; each is answered when it is durable.

use kafka::ErrorCode;
use kafka::create_topics::{Assignment, ConfigResponse, Request, Response, Topic, TopicResponse};
use topic_service::{Execution, NewTopic, Topics};
use topics::{Config, Topic as About};

use super::changes::{Changing, begun, changed, execution};
use super::configs::{Source, each};
use super::uuid;
use crate::brokers::Brokers;
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::reply::{Answer, Tag};

/// The value for the broker's default.
const DEFAULT: i32 = -1;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let brokers = Brokers::of(client);
    let execution = execution(request.validate_only);
    let making = begun(
        request.topics,
        |topic| &topic.name,
        |topic| make(topics, &brokers, topic, execution),
    );
    let defaults = topics.options().defaults.clone();
    let replication = (brokers.replicas().len(), brokers.min_insync());
    let deadline = Deadline::asked(request.timeout_ms).for_disk();
    tag.later(async move {
        let mut response = Response::default();
        for (name, making) in making {
            let made = changed(making, deadline).await;
            response
                .topics
                .push(shown(name, made, &defaults, execution, &replication));
        }
        response
    })
}

fn make(topics: &Topics, brokers: &Brokers<'_>, topic: &Topic, execution: Execution) -> Changing {
    let partitions = match topic.assignments.as_slice() {
        [] => {
            brokers.check_factor(topic.replication_factor)?;
            Some(topic.num_partitions).filter(|count| *count != DEFAULT)
        }
        assignments => Some(assigned(brokers, topic, assignments)?),
    };
    for config in &topic.configs {
        brokers.check_config(&config.name, config.value.as_deref())?;
    }
    let configs: Vec<_> = topic
        .configs
        .iter()
        .map(|config| (config.name.as_str(), config.value.as_deref()))
        .collect();
    let new = NewTopic {
        name: &topic.name,
        partitions,
        configs: &configs,
    };
    Ok(topics.create(&new, execution))
}

/// Returns the number of partitions of an explicit assignment.
fn assigned(
    brokers: &Brokers<'_>,
    topic: &Topic,
    assignments: &[Assignment],
) -> Result<i32, Failed> {
    if topic.num_partitions != DEFAULT || i32::from(topic.replication_factor) != DEFAULT {
        let message = "an assignment excludes a number of partitions or replicas";
        return Err(Failed::new(ErrorCode::InvalidRequest, message));
    }
    let mut indexes: Vec<_> = assignments.iter().map(|it| it.partition_index).collect();
    indexes.sort_unstable();
    let is_dense = indexes.iter().copied().eq(0..assignments.len() as i32);
    let is_here = assignments
        .iter()
        .all(|it| brokers.may_replicate(&it.broker_ids));
    if !is_dense || !is_here {
        let message = format!(
            "an assignment counts partitions from 0, each with {}",
            brokers.possible_replicas()
        );
        return Err(Failed::new(ErrorCode::InvalidReplicaAssignment, message));
    }
    Ok(assignments.len() as i32)
}

fn shown(
    name: String,
    made: Result<About, Failed>,
    defaults: &Config,
    execution: Execution,
    (replicas, min_insync): &(usize, Option<String>),
) -> TopicResponse {
    let response = TopicResponse {
        name,
        ..TopicResponse::default()
    };
    match made {
        Ok(about) => TopicResponse {
            // A topic that was only validated has no id.
            topic_id: match execution {
                Execution::Do => uuid(about.id),
                Execution::Try => kafka::Uuid::ZERO,
            },
            num_partitions: i32::try_from(about.partitions).unwrap_or(i32::MAX),
            replication_factor: i16::try_from(*replicas).unwrap_or(i16::MAX),
            configs: Some(
                each(&about.config, defaults, min_insync.as_deref())
                    .map(config)
                    .collect(),
            ),
            ..response
        },
        Err(failed) => TopicResponse {
            error_code: failed.code,
            error_message: Some(failed.message),
            ..response
        },
    }
}

fn config((key, value, source): (topics::Key, &str, Source)) -> ConfigResponse {
    ConfigResponse {
        name: key.name().to_owned(),
        value: Some(value.to_owned()),
        read_only: false,
        config_source: source.code(),
        is_sensitive: false,
    }
}
