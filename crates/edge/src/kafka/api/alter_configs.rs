//! AlterConfigs: what of a topic's configuration is not named becomes the default again.

use kafka::ErrorCode;
use kafka::alter_configs::{Request, ResourceResponse, Response};
use node::topics::Execution;

use super::configs::{TOPIC, not_alterable};
use crate::kafka::client::Client;
use crate::kafka::errors::told;
use crate::kafka::reply::{Answer, Tag};

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
            let altering = match resource.resource_type {
                TOPIC => {
                    let configs = resource.configs.iter();
                    let configs: Vec<_> = configs
                        .map(|config| (&*config.name, config.value.as_deref()))
                        .collect();
                    Ok(topics.configure(&resource.resource_name, &configs, execution))
                }
                other => Err(not_alterable(other)),
            };
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
