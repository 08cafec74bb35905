//! Wrong commands and wrong data directories.

use bytes::Bytes;
use kafka::{add_partitions_to_txn, init_producer_id, produce};
use recordbatch::{Attributes, Builder, Producer, Template};
use serde_json::json;

use super::{Cluster, Writer};
use crate::kafka::client::{Client, good};
use crate::support::{Node, Place, Running, eventually, free_port};

/// Returns the options of a node on free ports.
fn listeners() -> String {
    let [link, native, http, kafka] = std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()));
    format!(
        "--cluster-listen {link} --native-listen {native} --http-listen {http} \
         --kafka-listen {kafka} --slim-listen none --native-socket none"
    )
}

/// Leaves a transaction open.
fn open_transaction(node: &Node) {
    const NAME: &str = "copy";
    const TOPIC: &str = "copied";
    let mut client = Client::connect(node).unwrap();
    let begin = init_producer_id::Request {
        transactional_id: Some(NAME.to_owned()),
        transaction_timeout_ms: 600_000,
        ..init_producer_id::Request::default()
    };
    let begun = client.ask(4, &begin).unwrap();
    good(begun.error_code).unwrap();
    let topic = add_partitions_to_txn::Topic {
        name: TOPIC.to_owned(),
        partitions: vec![0],
    };
    let add = add_partitions_to_txn::Request {
        v3_and_below_transactional_id: NAME.to_owned(),
        v3_and_below_producer_id: begun.producer_id,
        v3_and_below_producer_epoch: begun.producer_epoch,
        v3_and_below_topics: vec![topic],
        ..add_partitions_to_txn::Request::default()
    };
    let added = client.ask(3, &add).unwrap();
    let result = &added.results_by_topic_v3_and_below[0].results_by_partition[0];
    good(result.partition_error_code).unwrap();
    let mut builder = Builder::new();
    builder.push(1, None, Some(b"open"), &[]);
    let template = Template {
        attributes: Attributes::default().transactional(),
        producer: Some(Producer {
            id: begun.producer_id,
            epoch: begun.producer_epoch,
            sequence: 0,
        }),
        ..Template::default()
    };
    let mut bytes = Vec::new();
    builder.finish(&template, &mut bytes);
    let partition = produce::Partition {
        index: 0,
        records: Some(Bytes::from(bytes).into()),
    };
    let write = produce::Request {
        transactional_id: Some(NAME.to_owned()),
        acks: -1,
        timeout_ms: 20_000,
        topic_data: vec![produce::Topic {
            name: TOPIC.to_owned(),
            partition_data: vec![partition],
            ..produce::Topic::default()
        }],
    };
    let written = client.ask(9, &write).unwrap();
    good(written.responses[0].partition_responses[0].error_code).unwrap();
}

#[test]
fn init_refuses_by_name_what_a_cluster_does_not_serve() {
    let place = Place::new();
    let node = place.serve("--data data");
    let url = node.url("native").to_owned();
    let run = |line: &str| place.run(&format!("{line} --url {url}"));
    for line in [
        "conversation append acme/demo/c-1 hello",
        "write acme/demo/box hello",
        "append acme/demo/log hello",
        "topic create copied --partitions 1",
    ] {
        run(line).expect(0);
    }
    let mut policies = run("quota policies --json").expect(0).json();
    policies["limits"] = json!([{
        "name": "team", "match": "acme/*/*", "unit": "requests", "capacity": 10, "refill": "1/s",
    }]);
    place.write("limits.json", &policies.to_string());
    run("quota policies --set limits.json --reason test").expect(0);
    open_transaction(&node);
    node.stop().expect(0);
    let init = format!("cluster init --data data {}", listeners());
    let refused = place.run(&init);
    for held in [
        "conversation acme/demo/c-1",
        "mailbox acme/demo/box",
        "limit team",
        "open transaction copy",
    ] {
        refused.expect(2).shows_error(held, "--data PATH");
    }
    assert!(!place.path("data/cluster.json").exists());
    // Nothing has changed: the node goes on alone.
    let node = place.serve("--data data");
    let url = node.url("native");
    let read = place.run(&format!("read acme/demo/log --url {url}"));
    assert_eq!(read.expect(0).stdout, "0 hello\n");
    node.stop().expect(0);
}

#[test]
fn wrong_commands_to_a_cluster_are_refused_with_hints() {
    let mut cluster = Cluster::start();
    let writer = Writer::start(&cluster, &[0, 1, 2]);
    let place = &cluster.place;
    let (link, key) = (
        cluster.address(0, "link"),
        cluster.data(0).join("cluster.key"),
    );
    let key = key.display();
    let join = |data: &str, contact: &str, key: &str| {
        let listeners = listeners();
        place.run(&format!(
            "serve --data {data} --join {contact} --cluster-key {key} {listeners}"
        ))
    };
    // A key of another cluster.
    let init = format!("cluster init --data other {}", listeners());
    place.run(&init).expect(0);
    let other = place.path("other/cluster.key");
    join("empty", link, &other.display().to_string())
        .expect(4)
        .shows_error("the cluster keys differ", "its key");
    assert!(!place.path("empty/cluster.json").exists());
    place.write("short.key", "00ff\n");
    join("empty", link, "short.key")
        .expect(1)
        .shows_error("too short", "--cluster-key FILE");
    join("empty", link, "missing.key")
        .expect(1)
        .shows_error("missing.key", "--cluster-key FILE");
    // A member of another cluster, and a node with data of its own.
    join("other", link, &key.to_string())
        .expect(2)
        .shows_error("another cluster", "--data PATH");
    let lone = place.serve("--data lone");
    let native = lone.address("native").to_owned();
    let unanswered = join("empty", &native, &key.to_string());
    assert_ne!(unanswered.code(), 0);
    unanswered.shows_error(&format!("cannot join through {native}"), "a running member");
    lone.stop().expect(0);
    join("lone", link, &key.to_string())
        .expect(2)
        .shows_error("holds data of its own", "--data PATH");
    // No node listens there.
    let silent = format!("127.0.0.1:{}", free_port());
    let unanswered = join("empty", &silent, &key.to_string());
    assert_ne!(unanswered.code(), 0);
    unanswered.shows_error(&format!("cannot join through {silent}"), "a running member");
    // `init` a second time, at a stopped member and at a running one.
    place
        .run(&init)
        .expect(2)
        .shows_error("is a member of the cluster", "telpher serve");
    let running = cluster.data(1);
    let again = format!("cluster init --data {} {}", running.display(), listeners());
    let in_use = place.run(&again);
    assert_ne!(in_use.code(), 0);
    in_use.shows_error("in use", "stop that node");
    // Members that cannot be removed.
    let leader = cluster.leader();
    let unknown = cluster.run_at(0, "cluster remove 99");
    assert_ne!(unknown.code(), 0);
    unknown.shows_error("no member has the id 99", "telpher cluster status");
    let itself = cluster.run_at(0, &format!("cluster remove {}", cluster.id(leader)));
    assert_ne!(itself.code(), 0);
    itself.shows_error("leads the cluster", "telpher cluster status");
    let killed = (leader + 1) % 3;
    cluster.kill(killed);
    cluster.wait_until_in_sync(killed, false);
    eventually("the removal of the last follower is refused", || {
        // The leader may change: the machine is busy.
        let leader = cluster.leader();
        let last = (0..3).find(|it| ![leader, killed].contains(it)).unwrap();
        let refused = cluster.run_at(leader, &format!("cluster remove {}", cluster.id(last)));
        assert_ne!(refused.code(), 0);
        let is_refused = refused.stderr.contains("no quorum");
        if is_refused {
            refused.shows_error("no quorum", "telpher cluster status");
        }
        is_refused
    });
    // A member does not accept losses.
    let mut lossy = cluster.command(killed);
    Running::spawn(lossy.arg("--journal-accept-loss"))
        .end()
        .expect(2)
        .shows_error("a member does not accept losses", "remove the member");
    cluster.restart(killed);
    cluster.wait_until_in_sync(killed, true);
    writer.wait_for_progress();
    let status = cluster.status(cluster.leader()).unwrap();
    assert_eq!(status["nodes"].as_array().unwrap().len(), 3, "{status:#}");
    writer.check(&cluster, killed);
}

#[test]
fn member_of_a_newer_format_takes_no_part_and_keeps_its_data() {
    let mut cluster = Cluster::start();
    let writer = Writer::start(&cluster, &[0, 1, 2]);
    let member = (cluster.leader() + 1) % 3;
    cluster.kill(member);
    let manifest = cluster.data(member).join("journal/MANIFEST");
    let original = std::fs::read(&manifest).unwrap();
    let mut newer = original.clone();
    newer[4] = 99;
    std::fs::write(&manifest, &newer).unwrap();
    let refused = Running::spawn(&mut cluster.command(member));
    let mut answer = (0, String::new());
    eventually("the member answers", || {
        answer = cluster.get(member, "/readyz");
        answer.0 == 503
    });
    assert!(answer.1.contains("format version 99"), "{}", answer.1);
    writer.wait_for_progress();
    refused
        .stop()
        .expect(1)
        .shows_error("this build reads up to", "telpher inspect");
    assert_eq!(std::fs::read(&manifest).unwrap(), newer);
    std::fs::write(&manifest, original).unwrap();
    cluster.restart(member);
    cluster.wait_until_in_sync(member, true);
    writer.check(&cluster, member);
}
