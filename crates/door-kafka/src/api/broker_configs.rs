//! The configuration of the broker: the node's options, under Kafka's names.

use kafka::describe_configs::{Config, Synonym};
use topics::{Key, Kind};

use super::configs::{Source, kind_code};
use crate::brokers::{Broker, Brokers};
use crate::client::Client;

/// A broker configuration. None of them changes while the node runs.
struct Setting {
    name: &'static str,
    kind: Kind,
    value: String,
    /// Kafka's default, if it has one.
    default: Option<&'static str>,
    documentation: &'static str,
}

/// Returns the configuration of a broker, by name. All brokers have the same, except for their ids
/// and addresses.
pub(super) fn described(
    client: &Client,
    broker: &Broker,
    has_synonyms: bool,
    is_documented: bool,
) -> Vec<Config> {
    let mut settings = of_topics(client);
    settings.extend(of_node(client, broker));
    settings.extend(of_groups(client));
    settings.sort_unstable_by_key(|setting| setting.name);
    let settings = settings.into_iter();
    settings
        .map(|it| it.describe(has_synonyms, is_documented))
        .collect()
}

impl Setting {
    fn describe(self, has_synonyms: bool, is_documented: bool) -> Config {
        let is_default = self.default == Some(self.value.as_str());
        let source = match is_default {
            true => Source::Default,
            false => Source::Start,
        };
        let synonym = |value: &str, source: Source| Synonym {
            name: self.name.to_owned(),
            value: Some(value.to_owned()),
            source: source.code(),
        };
        let set = (!is_default).then(|| synonym(&self.value, Source::Start));
        let default = self.default.map(|it| synonym(it, Source::Default));
        let synonyms = set.into_iter().chain(default).filter(|_| has_synonyms);
        Config {
            synonyms: synonyms.collect(),
            name: self.name.to_owned(),
            value: Some(self.value),
            read_only: true,
            config_source: source.code(),
            config_type: kind_code(self.kind),
            documentation: is_documented.then(|| self.documentation.to_owned()),
            ..Config::default()
        }
    }
}

/// Returns the defaults of topics.
fn of_topics(client: &Client) -> Vec<Setting> {
    let defaults = &client.topics().options().defaults;
    let settings = Key::ALL.iter().filter_map(|key| {
        Some(Setting {
            name: key.broker_name()?,
            kind: key.kind(),
            value: defaults.value(*key).to_owned(),
            default: Some(key.default()),
            documentation: key.documentation(),
        })
    });
    settings.collect()
}

fn of_node(client: &Client, broker: &Broker) -> [Setting; 16] {
    let brokers = Brokers::of(client);
    let replicas = brokers.replicas().len();
    let options = client.topics().options();
    let door = &client.door.options;
    let protocol = match (client.door.asks_who_it_is(), door.is_tls) {
        (false, false) => "PLAINTEXT",
        (false, true) => "SSL",
        (true, false) => "SASL_PLAINTEXT",
        (true, true) => "SASL_SSL",
    };
    let listener = |host: &str| {
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        format!("{protocol}://{host}:{}", broker.address.port)
    };
    [
        setting(
            "advertised.listeners",
            Kind::List,
            listener(&broker.address.host),
            None,
            "The address at which clients are told to find the broker (kafka.advertised).",
        ),
        setting(
            "authorizer.class.name",
            Kind::Word,
            "",
            Some(""),
            "Empty: there are no access rules.",
        ),
        setting(
            "auto.create.topics.enable",
            Kind::Flag,
            options.auto_create,
            Some("true"),
            "Whether a topic is created when a client asks for it (topics.auto_create).",
        ),
        setting(
            "broker.id",
            Kind::Int,
            broker.id,
            None,
            "The number of the broker.",
        ),
        setting(
            "connections.max.idle.ms",
            Kind::Long,
            door.idle_timeout.as_millis(),
            Some("600000"),
            "After how long an idle connection is closed, in milliseconds (kafka.idle_timeout).",
        ),
        setting(
            "default.replication.factor",
            Kind::Int,
            replicas,
            Some("1"),
            "The number of replicas of every partition.",
        ),
        setting(
            "delete.topic.enable",
            Kind::Flag,
            true,
            Some("true"),
            "Topics can be deleted.",
        ),
        setting(
            "listeners",
            Kind::List,
            listener(&broker.address.host),
            None,
            "The address at which clients reach the broker (kafka.listen).",
        ),
        setting(
            "log.dirs",
            Kind::List,
            &door.log_dir,
            None,
            "The data directory of the node (data).",
        ),
        setting(
            "node.id",
            Kind::Int,
            broker.id,
            None,
            "The number of the broker.",
        ),
        setting(
            "num.partitions",
            Kind::Int,
            options.partitions,
            Some("1"),
            "Partitions of a topic that is created without a number (topics.partitions).",
        ),
        setting(
            "socket.request.max.bytes",
            Kind::Int,
            door.frame_size_max,
            Some("104857600"),
            "The largest request, in bytes (kafka.frame_size_max).",
        ),
        setting(
            "transaction.max.timeout.ms",
            Kind::Int,
            options.transaction_timeout_ms_max,
            Some("900000"),
            "The longest transaction timeout, in milliseconds (topics.transaction_timeout_max).",
        ),
        setting(
            "transaction.state.log.min.isr",
            Kind::Int,
            brokers.quorum(),
            Some("2"),
            "How many replicas acknowledge a record.",
        ),
        setting(
            "transaction.state.log.replication.factor",
            Kind::Int,
            replicas,
            Some("3"),
            "The number of replicas of every partition.",
        ),
        setting(
            "transactional.id.expiration.ms",
            Kind::Int,
            options.transactional_id_unused_ms,
            Some("604800000"),
            "How long an unused transactional.id is known, in milliseconds \
             (topics.transactional_id_expiration).",
        ),
    ]
}

fn of_groups(client: &Client) -> [Setting; 8] {
    let replicas = Brokers::of(client).replicas().len();
    let groups = &client.topics().options().groups;
    [
        setting(
            "group.coordinator.rebalance.protocols",
            Kind::List,
            "classic",
            Some("classic,consumer,streams"),
            "The classic group protocol is supported, that of KIP-848 is not.",
        ),
        setting(
            "group.initial.rebalance.delay.ms",
            Kind::Int,
            groups.initial_rebalance_delay_ms,
            Some("3000"),
            "How long the first rebalance waits for members, in milliseconds \
             (topics.group_join_delay).",
        ),
        setting(
            "group.max.session.timeout.ms",
            Kind::Int,
            groups.session_timeout_ms_max,
            Some("1800000"),
            "The longest session timeout of a member, in milliseconds.",
        ),
        setting(
            "group.max.size",
            Kind::Int,
            groups.members_max,
            Some("2147483647"),
            "The largest number of members of a group.",
        ),
        setting(
            "group.min.session.timeout.ms",
            Kind::Int,
            groups.session_timeout_ms_min,
            Some("6000"),
            "The shortest session timeout of a member, in milliseconds.",
        ),
        setting(
            "offset.metadata.max.bytes",
            Kind::Int,
            groups.offset_metadata_size_max,
            Some("4096"),
            "The largest metadata of a committed offset, in bytes.",
        ),
        setting(
            "offsets.retention.minutes",
            Kind::Int,
            groups.offsets_retention_ms / 60_000,
            Some("10080"),
            "How long offsets of a group without members are kept, in minutes.",
        ),
        setting(
            "offsets.topic.replication.factor",
            Kind::Int,
            replicas,
            Some("3"),
            "The number of replicas of every partition.",
        ),
    ]
}

fn setting(
    name: &'static str,
    kind: Kind,
    value: impl ToString,
    default: Option<&'static str>,
    documentation: &'static str,
) -> Setting {
    Setting {
        name,
        kind,
        value: value.to_string(),
        default,
        documentation,
    }
}
