//! IncrementalAlterConfigs: changes single values of a topic's configuration.

use kafka::ErrorCode;
use kafka::incremental_alter_configs::{Config, Request, Resource, ResourceResponse, Response};
use topic_service::{Execution, Topics};
use topics::Alter;

use super::changes::{Changing, execution, outcome};
use super::configs::{TOPIC, not_alterable};
use crate::brokers::Brokers;
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::reply::{Answer, Tag};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let execution = execution(request.validate_only);
    let altering: Vec<_> = request
        .resources
        .into_iter()
        .map(|resource| {
            let altering = alter(client, topics, &resource, execution);
            (resource.resource_type, resource.resource_name, altering)
        })
        .collect();
    let deadline = Deadline::usual();
    tag.later(async move {
        let mut response = Response::default();
        for (resource_type, resource_name, altering) in altering {
            let (error_code, error_message) = outcome(altering, deadline).await;
            response.responses.push(ResourceResponse {
                error_code,
                error_message,
                resource_type,
                resource_name,
            });
        }
        response
    })
}

fn alter(client: &Client, topics: &Topics, resource: &Resource, execution: Execution) -> Changing {
    if resource.resource_type != TOPIC {
        return Err(not_alterable(resource.resource_type));
    }
    client.check_topic(&resource.resource_name)?;
    let brokers = Brokers::of(client);
    for config in &resource.configs {
        if config.config_operation == SET {
            brokers.check_config(&config.name, config.value.as_deref())?;
        }
    }
    let alters = resource.configs.iter().map(change);
    let alters = alters.collect::<Result<Vec<_>, _>>()?;
    Ok(topics.alter(&resource.resource_name, &alters, execution))
}

fn change(config: &Config) -> Result<(&str, Alter<'_>), Failed> {
    let invalid = |message: String| Failed::new(ErrorCode::InvalidRequest, message);
    let value = config.value.as_deref();
    let value = value.ok_or_else(|| invalid(format!("{} has no value", config.name)));
    let change = match config.config_operation {
        SET => Alter::Set(value?),
        DELETE => Alter::Reset,
        APPEND => Alter::Append(value?),
        SUBTRACT => Alter::Subtract(value?),
        other => return Err(invalid(format!("unknown operation {other}"))),
    };
    Ok((&config.name, change))
}
