//! DescribeConfigs: describes the configuration of topics, and of this node as far as Kafka has
//! keys for it.

use kafka::ErrorCode;
use kafka::describe_configs::{Config, Request, Resource, ResourceResponse, Response, Synonym};
use topic_service::TopicRef;
use topics::{Config as Defaults, Key, check_name};

use super::broker_configs;
use super::configs::{BROKER, Source, TOPIC, each, kind_code};
use crate::brokers::Brokers;
use crate::client::Client;
use crate::errors::Failed;

/// The details that the request asks for.
#[derive(Clone, Copy)]
struct Ask {
    has_synonyms: bool,
    is_documented: bool,
}

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let ask = Ask {
        has_synonyms: request.include_synonyms,
        is_documented: request.include_documentation,
    };
    let resources = request.resources.into_iter();
    let results = resources.map(|resource| {
        let described = match resource.resource_type {
            TOPIC => topic(client, &resource.resource_name, ask),
            BROKER => broker(client, &resource.resource_name, ask),
            _ => Err(Failed::new(
                ErrorCode::InvalidRequest,
                "only topics and the broker have a configuration",
            )),
        };
        shown(resource, described)
    });
    Response {
        results: results.collect(),
        ..Response::default()
    }
}

fn shown(resource: Resource, described: Result<Vec<Config>, Failed>) -> ResourceResponse {
    let response = ResourceResponse {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        ..ResourceResponse::default()
    };
    match described {
        Ok(mut configs) => {
            // An empty list means all keys.
            if let Some(wanted) = resource.configuration_keys.filter(|it| !it.is_empty()) {
                configs.retain(|config| wanted.contains(&config.name));
            }
            ResourceResponse {
                configs,
                ..response
            }
        }
        Err(failed) => ResourceResponse {
            error_code: failed.code,
            error_message: Some(failed.message),
            ..response
        },
    }
}

fn topic(client: &Client, name: &str, ask: Ask) -> Result<Vec<Config>, Failed> {
    check_name(name).map_err(|bad| {
        let code = ErrorCode::InvalidTopicException;
        Failed::new(code, bad.to_string())
    })?;
    let found = client.topics().find(TopicRef::Name(name));
    let found = found.ok_or_else(|| {
        let code = ErrorCode::UnknownTopicOrPartition;
        Failed::new(code, "there is no such topic")
    })?;
    let defaults = &client.topics().options().defaults;
    let min_insync = Brokers::of(client).min_insync();
    let configs =
        each(&found.about().config, defaults, min_insync.as_deref()).map(|(key, value, source)| {
            let synonyms = match ask.has_synonyms {
                true => synonyms(key, value, source, defaults),
                false => Vec::new(),
            };
            Config {
                name: key.name().to_owned(),
                value: Some(value.to_owned()),
                config_source: source.code(),
                config_type: kind_code(key.kind()),
                synonyms,
                documentation: ask.is_documented.then(|| key.documentation().to_owned()),
                ..Config::default()
            }
        });
    Ok(configs.collect())
}

/// Returns the sources of a value, the strongest first: the topic, the broker configuration of the
/// same meaning, Kafka's default.
fn synonyms(key: Key, value: &str, source: Source, defaults: &Defaults) -> Vec<Synonym> {
    let synonym = |name: &str, value: &str, source: Source| Synonym {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        source: source.code(),
    };
    let topic = (source == Source::Topic).then(|| synonym(key.name(), value, source));
    let broker = key.broker_name().into_iter().flat_map(|name| {
        let start = defaults.is_set(key);
        let start = start.then(|| synonym(name, defaults.value(key), Source::Start));
        start
            .into_iter()
            .chain([synonym(name, key.default(), Source::Default)])
    });
    topic.into_iter().chain(broker).collect()
}

fn broker(client: &Client, name: &str, ask: Ask) -> Result<Vec<Config>, Failed> {
    // The empty name means the defaults of all brokers, of which none can be set.
    if name.is_empty() {
        return Ok(Vec::new());
    }
    let brokers = Brokers::of(client);
    let Some(asked) = name.parse().ok().and_then(|id| brokers.find(id)) else {
        let message = match *brokers.ids() {
            [only] => format!("there is one broker, {only}"),
            ref ids => format!("the brokers are {ids:?}"),
        };
        return Err(Failed::new(ErrorCode::InvalidRequest, message));
    };
    Ok(broker_configs::described(
        client,
        &asked,
        ask.has_synonyms,
        ask.is_documented,
    ))
}
