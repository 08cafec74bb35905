//! AlterConfigs: replaces a topic's configuration; keys that are not named get their default.

use kafka::alter_configs::{Request, ResourceResponse, Response};

use super::changes::{execution, outcome};
use super::configs::{TOPIC, not_alterable};
use crate::brokers::Brokers;
use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let brokers = Brokers::of(client);
    let execution = execution(request.validate_only);
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
                    let name = &resource.resource_name;
                    client
                        .check_topic(name)
                        .and_then(|()| {
                            let mut each = configs.iter();
                            each.try_for_each(|(key, value)| brokers.check_config(key, *value))
                        })
                        .map(|()| topics.configure(name, &configs, execution))
                }
                other => Err(not_alterable(other)),
            };
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
