use model::ErrorCode;
use topic_service::{Execution, NewTopic, TopicRef};
use wire::{
    Append, AppendedRecords, Cast, Credit, Extract, Flags, Kind, Payload, Read, TopicRecord,
};

use crate::agent::{Agent, Frame, tag};
use crate::durable_node::DurableNode;

/// A node with the topic `t` of two partitions, and a client with routes to it and to both.
async fn open() -> (DurableNode, Agent) {
    let mut durable_node = DurableNode::new();
    let new = NewTopic {
        name: "t",
        partitions: Some(2),
        configs: &[],
    };
    let topics = durable_node.bench.node.topics().unwrap();
    let made = topics.create(&new, Execution::Do);
    durable_node.sync();
    made.await.unwrap();
    let mut agent = durable_node.bench.agent("").await;
    for (route, name) in [(1, "t"), (2, "t/0"), (3, "t/1")] {
        agent.bind(route, name, Cast::Topic).await;
    }
    (durable_node, agent)
}

fn keyed<'a>(key: &'a str, value: &'a str) -> TopicRecord<'a> {
    TopicRecord {
        key: Some(key.as_bytes()),
        value: Some(value.as_bytes()),
        ..TopicRecord::default()
    }
}

fn value(value: &str) -> TopicRecord<'_> {
    TopicRecord {
        value: Some(value.as_bytes()),
        ..TopicRecord::default()
    }
}

async fn append(agent: &mut Agent, route: u16, slot: u32, records: &[TopicRecord<'_>]) {
    let records: Vec<_> = records
        .iter()
        .map(|record| {
            let mut out = Vec::new();
            record.encode(&mut out);
            out
        })
        .collect();
    let mut body = Vec::new();
    Append::encode(None, &records, &mut body);
    agent
        .message(Kind::APPEND, Flags::NONE, route, tag(slot), &body)
        .await;
}

async fn ask(agent: &mut Agent, kind: Kind, route: u16, slot: u32, from: u64, records_max: u32) {
    let read = Read {
        from,
        records_max,
        bytes_max: 1 << 20,
    };
    agent
        .message(kind, Flags::NONE, route, tag(slot), &read.encode())
        .await;
}

fn places(frame: &Frame) -> Vec<(u32, u64)> {
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let appended = AppendedRecords::decode(&frame.payload).unwrap();
    appended.places().collect()
}

/// Start, next, and values with their offsets.
fn extracted(frame: &Frame) -> (u64, u64, Vec<String>) {
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let extract = Extract::decode(&frame.payload).unwrap();
    let records = extract.records().map(|it| {
        assert_eq!(it.time_ms, 1_700_000_000_000);
        let record = TopicRecord::decode(it.bytes).unwrap();
        let value = String::from_utf8_lossy(record.value.unwrap());
        format!("{} {value}", it.offset)
    });
    (extract.start, extract.next, records.collect())
}

#[tokio::test]
async fn records_are_acknowledged_when_on_disk_and_partitioned_by_key() {
    let (mut durable_node, mut agent) = open().await;
    // By the hashes that the Java client's own test names: both even.
    append(&mut agent, 1, 0, &[keyed("21", "a"), keyed("foobar", "b")]).await;
    append(&mut agent, 3, 1, &[value("c"), keyed("21", "d")]).await;
    let thread_per_task = TopicRecord {
        partition: Some(0),
        ..value("e")
    };
    append(&mut agent, 3, 2, &[thread_per_task]).await;
    agent.expect_nothing().await;
    durable_node.sync();
    assert_eq!(places(&agent.next().await), [(0, 0), (0, 1)]);
    assert_eq!(places(&agent.next().await), [(1, 0), (1, 1)]);
    assert_eq!(places(&agent.next().await), [(0, 2)]);
    ask(&mut agent, Kind::READ, 2, 0, 0, 10).await;
    let all = vec!["0 a".to_owned(), "1 b".into(), "2 e".into()];
    assert_eq!(extracted(&agent.next().await), (0, 3, all.clone()));
    ask(&mut agent, Kind::READ, 2, 0, 1, 1).await;
    assert_eq!(extracted(&agent.next().await), (0, 3, all[1..2].to_vec()));
    ask(&mut agent, Kind::READ, 2, 0, 3, 10).await;
    assert_eq!(extracted(&agent.next().await), (0, 3, Vec::new()));
    // The end alone.
    ask(&mut agent, Kind::READ, 3, 0, u64::MAX, 10).await;
    assert_eq!(extracted(&agent.next().await), (0, 2, Vec::new()));
}

#[tokio::test]
async fn a_partition_is_followed_within_its_credit_until_cancelled() {
    let (mut durable_node, mut agent) = open().await;
    ask(&mut agent, Kind::FOLLOW, 2, 0, 0, 1).await;
    agent.expect_nothing().await;
    let values: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    let records: Vec<_> = values.iter().map(|it| value(it)).collect();
    append(&mut agent, 2, 1, &records).await;
    agent.expect_nothing().await;
    durable_node.sync();
    let mut items = Vec::new();
    // The answer to the append is among them.
    while items.len() < 65 {
        items.push(agent.next().await);
    }
    let at = items.iter().position(|it| it.header.correlation == tag(1));
    assert_eq!(places(&items.remove(at.unwrap())).len(), 100);
    agent.expect_nothing().await;
    for items_more in [30, 6] {
        let credit = Credit {
            messages: items_more,
            bytes: 0,
        };
        agent.frame(|out| credit.encode(tag(0), out)).await;
        for _ in 0..items_more {
            items.push(agent.next().await);
        }
        agent.expect_nothing().await;
    }
    for (offset, item) in items.iter().enumerate() {
        assert!(item.header.flags.contains(Flags::MORE));
        assert_eq!(extracted(item).2, [format!("{offset} {offset}")]);
    }
    agent.frame(|out| wire::encode_cancel(tag(0), out)).await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Cancelled);
    append(&mut agent, 2, 1, &[value("x")]).await;
    agent.expect_nothing().await;
    durable_node.sync();
    assert_eq!(places(&agent.next().await), [(0, 100)]);
    agent.expect_nothing().await;
}

#[tokio::test]
async fn requests_for_unknown_topics_and_partitions_are_refused_with_the_reason() {
    let (mut durable_node, mut agent) = open().await;
    for (route, name) in [(4, "t/2"), (5, "tt/0"), (6, "a b"), (7, "t/x")] {
        agent.bind(route, name, Cast::Topic).await;
    }
    for (route, code, message) in [
        (
            1,
            ErrorCode::InvalidArgument,
            "the route names no partition: bind it to `t/0`, for example",
        ),
        (
            4,
            ErrorCode::NotFound,
            "`t` has no partition `2`: it has 0 to 1",
        ),
        (
            5,
            ErrorCode::NotFound,
            "there is no topic `tt`; is `t` meant?",
        ),
        (
            6,
            ErrorCode::InvalidArgument,
            "invalid character ' ' in the topic name: allowed are letters, digits and . _ -",
        ),
        (
            7,
            ErrorCode::InvalidArgument,
            "`t/x`: the partition must be a number, as in `t/0`",
        ),
    ] {
        for kind in [Kind::READ, Kind::FOLLOW] {
            ask(&mut agent, kind, route, 0, 0, 10).await;
            let frame = agent.next().await;
            let failure = frame.failure();
            assert_eq!((failure.code, failure.message), (code, message), "{kind:?}");
        }
    }
    append(&mut agent, 4, 0, &[value("x")]).await;
    let frame = agent.next().await;
    assert_eq!(
        frame.failure().message,
        "record 0: no partition 2: the topic has 2 partitions"
    );
    append(&mut agent, 2, 0, &[]).await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
    let mut expecting = Vec::new();
    Append::encode(Some(0), &[[0]], &mut expecting);
    agent
        .message(Kind::APPEND, Flags::NONE, 2, tag(0), &expecting)
        .await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
    // What is meant for a subscriber or for a stream does not go to a topic.
    agent.request(2, 0, b"x").await;
    let frame = agent.next().await;
    assert_eq!(
        frame.failure().message,
        "the route is bound to a topic, `t`"
    );
    append(&mut agent, 2, 0, &[value("a"), value("b"), value("c")]).await;
    agent.expect_nothing().await;
    durable_node.sync();
    assert_eq!(places(&agent.next().await).len(), 3);
    let topics = durable_node.bench.node.topics().unwrap();
    let topic = topics.find(TopicRef::Name("t")).unwrap();
    let deleted = topics.delete_records(&topic, 0, Some(2));
    durable_node.sync();
    assert_eq!(deleted.await, Ok(2));
    for (from, code, number) in [
        (1, ErrorCode::Trimmed, 2_u64),
        (4, ErrorCode::InvalidArgument, 2),
    ] {
        ask(&mut agent, Kind::FOLLOW, 2, 0, from, 10).await;
        let frame = agent.next().await;
        let failure = frame.failure();
        assert_eq!(
            (failure.code, failure.details),
            (code, &number.to_le_bytes()[..])
        );
    }
}

#[tokio::test]
async fn a_malformed_record_ends_the_connection() {
    let (_kept, mut agent) = open().await;
    let mut body = Vec::new();
    Append::encode(None, &[[0xff]], &mut body);
    agent
        .frame(|out| Payload::body(&body).encode(Kind::APPEND, Flags::NONE, 2, tag(0), out))
        .await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Protocol);
    assert_eq!(agent.try_next().await, None);
}
