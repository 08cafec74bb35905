//! DescribeConfigs: what is configured of topics, and of this node as far as Kafka has words for it.

use kafka::ErrorCode;
use kafka::describe_configs::{Config, Request, Resource, ResourceResponse, Response, Synonym};
use node::topics::{Config as Defaults, Key, TopicRef, check_name};

use super::NODE_ID;
use super::configs::{BROKER, Source, TOPIC, each, kind_code};
use crate::kafka::client::Client;
use crate::kafka::errors::Failed;

/// What a value of the node is shown as, which is set where the node is started.
const TEXT: i8 = 2;

pub(in crate::kafka) fn answer(client: &Client, request: Request) -> Response {
    let has_synonyms = request.include_synonyms;
    let resources = request.resources.into_iter();
    let results = resources.map(|resource| {
        let described = match resource.resource_type {
            TOPIC => topic(client, &resource.resource_name, has_synonyms),
            BROKER => broker(client, &resource.resource_name),
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
            // No names mean all of them.
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

fn topic(client: &Client, name: &str, has_synonyms: bool) -> Result<Vec<Config>, Failed> {
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
    let configs = each(&found.about().config, defaults).map(|(key, value, source)| {
        let synonyms = match has_synonyms {
            true => synonyms(key, value, source, defaults),
            false => Vec::new(),
        };
        Config {
            name: key.name().to_owned(),
            value: Some(value.to_owned()),
            config_source: source.code(),
            config_type: kind_code(key.kind()),
            synonyms,
            ..Config::default()
        }
    });
    Ok(configs.collect())
}

/// Where a value comes from, the strongest first.
fn synonyms(key: Key, value: &str, source: Source, defaults: &Defaults) -> Vec<Synonym> {
    let synonym = |value: &str, source: Source| Synonym {
        name: key.name().to_owned(),
        value: Some(value.to_owned()),
        source: source.code(),
    };
    let topic = (source == Source::Topic).then(|| synonym(value, source));
    let start = defaults.is_set(key).then(|| Synonym {
        name: broker_name(key).to_owned(),
        ..synonym(defaults.value(key), Source::Start)
    });
    let default = synonym(key.default(), Source::Default);
    topic.into_iter().chain(start).chain([default]).collect()
}

/// What Kafka calls a topic's value where it is that of all topics.
fn broker_name(key: Key) -> &'static str {
    match key {
        Key::RetentionMs => "log.retention.ms",
        Key::RetentionBytes => "log.retention.bytes",
        other => other.name(),
    }
}

fn broker(client: &Client, name: &str) -> Result<Vec<Config>, Failed> {
    if !name.is_empty() && name.parse() != Ok(NODE_ID) {
        let message = format!("there is one broker, {NODE_ID}");
        return Err(Failed::new(ErrorCode::InvalidRequest, message));
    }
    let options = client.topics().options();
    let groups = &options.groups;
    let minutes = groups.offsets_retention_ms / 60_000;
    let values = [
        ("auto.create.topics.enable", options.auto_create.to_string()),
        ("broker.id", NODE_ID.to_string()),
        ("default.replication.factor", "1".to_owned()),
        (
            "group.initial.rebalance.delay.ms",
            groups.initial_rebalance_delay_ms.to_string(),
        ),
        (
            "group.max.session.timeout.ms",
            groups.session_timeout_ms_max.to_string(),
        ),
        (
            "group.min.session.timeout.ms",
            groups.session_timeout_ms_min.to_string(),
        ),
        (
            "log.retention.bytes",
            options.defaults.value(Key::RetentionBytes).to_owned(),
        ),
        (
            "log.retention.ms",
            options.defaults.value(Key::RetentionMs).to_owned(),
        ),
        ("num.partitions", options.partitions.to_string()),
        (
            "offset.metadata.max.bytes",
            groups.offset_metadata_size_max.to_string(),
        ),
        ("offsets.retention.minutes", minutes.to_string()),
        (
            "socket.request.max.bytes",
            client.door.options.frame_size_max.to_string(),
        ),
        (
            "transaction.max.timeout.ms",
            options.transaction_timeout_ms_max.to_string(),
        ),
    ];
    let configs = values.into_iter().map(|(name, value)| Config {
        name: name.to_owned(),
        value: Some(value),
        read_only: true,
        config_source: Source::Start.code(),
        config_type: TEXT,
        ..Config::default()
    });
    Ok(configs.collect())
}
