//! The configuration of topics: Kafka's keys are checked, stored and described.

use kafka::{ErrorCode, alter_configs, create_topics, describe_configs, incremental_alter_configs};

use recordbatch::codecs::unpack;
use recordbatch::{Batches, Builder, Compression, Records, Template};

use crate::client::{batch, fetch, produce};
use crate::{Bench, Client};

/// The type of a topic resource.
const TOPIC: i8 = 2;

/// Settings as Terraform modules, Strimzi and MirrorMaker give them.
const USUAL: [(&str, &str); 22] = [
    ("cleanup.policy", "compact,delete"),
    ("compression.type", "zstd"),
    ("delete.retention.ms", "86400000"),
    ("file.delete.delay.ms", "60000"),
    ("flush.messages", "9223372036854775807"),
    ("flush.ms", "9223372036854775807"),
    ("index.interval.bytes", "4096"),
    ("max.compaction.lag.ms", "9223372036854775807"),
    ("max.message.bytes", "1048588"),
    ("message.downconversion.enable", "true"),
    ("message.timestamp.after.max.ms", "3600000"),
    ("message.timestamp.before.max.ms", "9223372036854775807"),
    ("min.cleanable.dirty.ratio", "0.3"),
    ("min.compaction.lag.ms", "1000"),
    ("min.insync.replicas", "2"),
    ("preallocate", "false"),
    ("segment.bytes", "1073741824"),
    ("segment.index.bytes", "10485760"),
    ("segment.jitter.ms", "0"),
    ("segment.ms", "604800000"),
    ("follower.replication.throttled.replicas", "0:1"),
    ("unclean.leader.election.enable", "false"),
];

fn topic(name: &str, configs: &[(&str, &str)]) -> create_topics::Request {
    let configs = configs.iter().map(|(name, value)| create_topics::Config {
        name: (*name).to_owned(),
        value: Some((*value).to_owned()),
    });
    create_topics::Request {
        topics: vec![create_topics::Topic {
            name: name.to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            configs: configs.collect(),
            ..create_topics::Topic::default()
        }],
        timeout_ms: 1_000,
        validate_only: false,
    }
}

async fn created(
    bench: &mut Bench,
    client: &mut Client,
    request: &create_topics::Request,
) -> (ErrorCode, String) {
    client.send(7, request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, response) = client.receive::<create_topics::Request>(7).await;
    let told = &response.topics[0];
    (
        told.error_code,
        told.error_message.clone().unwrap_or_default(),
    )
}

async fn described(
    client: &mut Client,
    name: &str,
    keys: Option<&[&str]>,
) -> Vec<describe_configs::Config> {
    let keys = keys.map(|keys| keys.iter().map(|it| (*it).to_owned()).collect());
    let request = describe_configs::Request {
        resources: vec![describe_configs::Resource {
            resource_type: TOPIC,
            resource_name: name.to_owned(),
            configuration_keys: keys,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    let mut response = client.ask(4, &request).await;
    response.results.remove(0).configs
}

#[tokio::test]
async fn usual_topic_configs_are_accepted_and_described() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    let created = created(&mut bench, &mut client, &topic("t", &USUAL)).await;
    assert_eq!(created, (ErrorCode::None, String::new()));
    let configs = described(&mut client, "t", None).await;
    for (name, value) in USUAL {
        let config = configs.iter().find(|it| it.name == name);
        let config = config.unwrap_or_else(|| panic!("{name} is not described"));
        assert_eq!(config.value.as_deref(), Some(value), "{name}");
        assert_eq!(config.config_source, 1, "{name}");
        assert!(config.documentation.is_some(), "{name}");
        assert_eq!(config.synonyms[0].name, name);
    }
    let of = |name: &str| configs.iter().find(|it| it.name == name).unwrap();
    let retention: Vec<_> = of("retention.ms")
        .synonyms
        .iter()
        .map(|it| &*it.name)
        .collect();
    assert_eq!(retention, ["log.retention.ms"]);
    assert_eq!(
        (
            of("preallocate").config_type,
            of("min.cleanable.dirty.ratio").config_type
        ),
        (1, 6)
    );
}

#[tokio::test]
async fn wrong_values_are_refused_with_the_range() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    for (key, value, expected) in [
        ("min.insync.replicas", "0", "from 1 to 2147483647"),
        ("min.cleanable.dirty.ratio", "2", "from 0 to 1"),
        ("segment.ms", "0", "from 1 to 9223372036854775807"),
        ("compression.type", "brotli", "zstd"),
        ("unclean.leader.election.enable", "maybe", "true or false"),
        ("remote.storage.enable", "true", "expected false"),
        ("no.such.key", "1", "unknown topic config"),
    ] {
        let request = topic("wrong", &[(key, value)]);
        let (code, message) = created(&mut bench, &mut client, &request).await;
        assert_eq!(code, ErrorCode::InvalidConfig, "{key}");
        assert!(message.contains(expected), "{message}");
    }
    let lags = [
        ("min.compaction.lag.ms", "9"),
        ("max.compaction.lag.ms", "8"),
    ];
    let (code, message) = created(&mut bench, &mut client, &topic("wrong", &lags)).await;
    assert_eq!(code, ErrorCode::InvalidConfig);
    assert!(message.contains("max.compaction.lag.ms (8)"), "{message}");
}

#[tokio::test]
async fn topic_configs_are_altered_incrementally_and_as_a_whole() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let set = |name: &str, value: &str| incremental_alter_configs::Config {
        name: name.to_owned(),
        config_operation: 0,
        value: Some(value.to_owned()),
    };
    let request = incremental_alter_configs::Request {
        resources: vec![incremental_alter_configs::Resource {
            resource_type: TOPIC,
            resource_name: "t".to_owned(),
            configs: vec![set("min.insync.replicas", "2"), set("segment.ms", "1000")],
        }],
        validate_only: false,
    };
    client.send(1, &request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, response) = client
        .receive::<incremental_alter_configs::Request>(1)
        .await;
    assert_eq!(response.responses[0].error_code, ErrorCode::None);
    let keys = ["min.insync.replicas", "segment.ms", "flush.ms"];
    let values = |configs: Vec<describe_configs::Config>| {
        let configs = configs.into_iter();
        configs
            .map(|it| (it.value.unwrap(), it.config_source))
            .collect::<Vec<_>>()
    };
    let of = |value: &str, source: i8| (value.to_owned(), source);
    let never = "9223372036854775807";
    let mut shown = values(described(&mut client, "t", Some(&keys)).await);
    shown.sort();
    let mut expected = [of("2", 1), of("1000", 1), of(never, 5)];
    expected.sort();
    assert_eq!(shown, expected);
    // What AlterConfigs does not name is the default again.
    let request = alter_configs::Request {
        resources: vec![alter_configs::Resource {
            resource_type: TOPIC,
            resource_name: "t".to_owned(),
            configs: vec![alter_configs::Config {
                name: "flush.ms".to_owned(),
                value: Some("5".to_owned()),
            }],
        }],
        validate_only: false,
    };
    client.send(2, &request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, response) = client.receive::<alter_configs::Request>(2).await;
    assert_eq!(response.responses[0].error_code, ErrorCode::None);
    let mut shown = values(described(&mut client, "t", Some(&keys)).await);
    shown.sort();
    let mut expected = [of("1", 5), of("604800000", 5), of("5", 1)];
    expected.sort();
    assert_eq!(shown, expected);
}

/// The compression of the batches of a topic, and their values.
async fn stored(client: &mut Client, name: &str) -> Vec<(Compression, Vec<u8>)> {
    let fetched = client.ask(12, &fetch(name, 0, 0)).await;
    let records = fetched.responses[0].partitions[0].records.clone().unwrap();
    let bytes = records.into_bytes();
    let batches = Batches::new(&bytes).map(|batch| {
        let batch = batch.unwrap();
        assert!(batch.is_intact());
        let payload = unpack(&batch, 1 << 20).unwrap();
        let mut records = Records::new(batch.header(), &payload);
        let value = records.next().unwrap().unwrap().value.unwrap().to_vec();
        (batch.header().attributes.compression().unwrap(), value)
    });
    batches.collect()
}

#[tokio::test]
async fn batches_are_recompressed_to_the_codec_of_the_topic_in_their_order() {
    for (value, codec) in [
        ("uncompressed", Compression::None),
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ] {
        let mut bench = Bench::new();
        let mut client = bench.connect();
        let request = topic("t", &[("compression.type", value)]);
        assert_eq!(
            created(&mut bench, &mut client, &request).await.0,
            ErrorCode::None
        );
        let sent = [
            Compression::None,
            Compression::Gzip,
            Compression::Zstd,
            codec,
        ];
        for (number, compression) in (b'0'..).zip(sent) {
            let mut builder = Builder::new();
            let text = [number; 2_000];
            builder.push(1_700_000_000_000, Some(b"key"), Some(&text), &[]);
            let mut records = Vec::new();
            builder.finish_compressed(&Template::default(), compression, &mut records);
            client.send(9, &produce("t", 1, records.into())).await;
        }
        bench.connect().flush_requests().await;
        bench.sync();
        for offset in 0..4 {
            let (_, response) = client.receive::<kafka::produce::Request>(9).await;
            let told = &response.responses[0].partition_responses[0];
            assert_eq!(
                (told.error_code, told.base_offset),
                (ErrorCode::None, offset)
            );
        }
        let stored = stored(&mut client, "t").await;
        let expected: Vec<_> = (b'0'..b'4')
            .map(|number| (codec, vec![number; 2_000]))
            .collect();
        assert_eq!(stored, expected, "{value}");
    }
}

#[tokio::test]
async fn a_damaged_batch_is_not_recompressed_but_refused() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    let request = topic("t", &[("compression.type", "zstd")]);
    assert_eq!(
        created(&mut bench, &mut client, &request).await.0,
        ErrorCode::None
    );
    let mut damaged = batch(b"1").to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    client.send(9, &produce("t", 1, damaged.into())).await;
    let (_, response) = client.receive::<kafka::produce::Request>(9).await;
    let told = &response.responses[0].partition_responses[0];
    assert_eq!(told.error_code, ErrorCode::CorruptMessage);
}

#[tokio::test]
async fn more_partitions_than_a_node_may_have_violate_its_policy() {
    let mut bench = Bench::of_topics(topic_service::Options {
        partitions_max: 2,
        ..topic_service::Options::default()
    });
    let mut client = bench.connect();
    let mut large = topic("large", &[]);
    large.topics[0].num_partitions = 3;
    let (code, message) = created(&mut bench, &mut client, &large).await;
    assert_eq!(code, ErrorCode::PolicyViolation);
    assert!(
        message.contains("limit 2, `topics.partitions_max`"),
        "{message}"
    );
    for name in ["one", "two"] {
        let (code, _) = created(&mut bench, &mut client, &topic(name, &[])).await;
        assert_eq!(code, ErrorCode::None);
    }
    let (code, _) = created(&mut bench, &mut client, &topic("three", &[])).await;
    assert_eq!(code, ErrorCode::PolicyViolation);
}
