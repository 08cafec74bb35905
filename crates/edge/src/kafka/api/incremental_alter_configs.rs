//! IncrementalAlterConfigs: some values of a topic's configuration change, the others stay.

use kafka::ErrorCode;
use kafka::incremental_alter_configs::{Config, Request, Resource, ResourceResponse, Response};
use node::topics::{About, AdminError, Alter, Execution, Pending, Topics};

use super::configs::{TOPIC, not_alterable};
use crate::kafka::client::Client;
use crate::kafka::errors::{Failed, told};
use crate::kafka::reply::{Answer, Tag};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

type Altering = Result<Pending<Result<About, AdminError>>, Failed>;

pub(in crate::kafka) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let execution = match request.validate_only {
        true => Execution::Try,
        false => Execution::Do,
    };
    let altering: Vec<_> = request
        .resources
        .into_iter()
        .map(|resource| {
            let altering = alter(topics, &resource, execution);
            (resource.resource_type, resource.resource_name, altering)
        })
        .collect();
    tag.later(async move {
        let mut response = Response::default();
        for (resource_type, resource_name, altering) in altering {
            let failed = match altering {
                Ok(altering) => told(altering.await).err(),
                Err(failed) => Some(failed),
            };
            response.responses.push(ResourceResponse {
                error_code: failed.as_ref().map_or(ErrorCode::None, |it| it.code),
                error_message: failed.map(|it| it.message),
                resource_type,
                resource_name,
            });
        }
        response
    })
}

fn alter(topics: &Topics, resource: &Resource, execution: Execution) -> Altering {
    if resource.resource_type != TOPIC {
        return Err(not_alterable(resource.resource_type));
    }
    let alters = resource.configs.iter().map(change);
    let alters = alters.collect::<Result<Vec<_>, _>>()?;
    Ok(topics.alter(&resource.resource_name, &alters, execution))
}

fn change(config: &Config) -> Result<(&str, Alter<'_>), Failed> {
    let invalid = |message: String| Failed::new(ErrorCode::InvalidRequest, message);
    let value = config.value.as_deref();
    let value = value.ok_or_else(|| invalid(format!("{} is given no value", config.name)));
    let change = match config.config_operation {
        SET => Alter::Set(value?),
        DELETE => Alter::Reset,
        APPEND => Alter::Append(value?),
        SUBTRACT => Alter::Subtract(value?),
        other => return Err(invalid(format!("operation {other} is not known"))),
    };
    Ok((&config.name, change))
}
