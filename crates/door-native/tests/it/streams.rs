use model::ErrorCode;
use wire::{Append, Appended, Cast, Credit, Extract, Flags, Kind, Payload, Read};

use crate::agent::{Agent, Frame, tag};
use crate::durable_node::DurableNode;

async fn agent(durable_node: &DurableNode) -> Agent {
    let mut agent = durable_node.bench.agent("").await;
    agent.bind(1, "a/b/log", Cast::Stream).await;
    agent
}

async fn append(agent: &mut Agent, slot: u32, expected: Option<u64>, records: &[&str]) {
    let mut body = Vec::new();
    Append::encode(expected, records, &mut body);
    agent
        .message(Kind::APPEND, Flags::NONE, 1, tag(slot), &body)
        .await;
}

async fn ask(agent: &mut Agent, kind: Kind, slot: u32, from: u64, records_max: u32) {
    let read = Read {
        from,
        records_max,
        bytes_max: 1 << 20,
    };
    agent
        .message(kind, Flags::NONE, 1, tag(slot), &read.encode())
        .await;
}

fn texts(frame: &Frame) -> Vec<String> {
    let extract = Extract::decode(&frame.payload).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    extract
        .records()
        .map(|record| format!("{} {}", record.offset, text(record.bytes)))
        .collect()
}

#[tokio::test]
async fn stream_append_is_acknowledged_and_readable_once_durable() {
    let mut durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    append(&mut agent, 0, None, &["one", "two"]).await;
    ask(&mut agent, Kind::READ, 1, 0, 10).await;
    assert_eq!(texts(&agent.next().await), [""; 0]);
    agent.expect_nothing().await;
    durable_node.sync();
    let frame = agent.next().await;
    assert_eq!(frame.header.correlation, tag(0));
    assert_eq!(
        Appended::decode(&frame.payload),
        Ok(Appended { first: 0, next: 2 })
    );
    ask(&mut agent, Kind::READ, 0, 0, 10).await;
    let frame = agent.next().await;
    assert_eq!(texts(&frame), ["0 one", "1 two"]);
    let extract = Extract::decode(&frame.payload).unwrap();
    assert_eq!((extract.start, extract.next), (0, 2));
    assert_eq!(extract.records().next().unwrap().time_ms, 1_700_000_000_000);
    ask(&mut agent, Kind::READ, 0, 1, 10).await;
    assert_eq!(texts(&agent.next().await), ["1 two"]);
    ask(&mut agent, Kind::READ, 0, 0, 1).await;
    assert_eq!(texts(&agent.next().await), ["0 one"]);
    ask(&mut agent, Kind::READ, 0, 7, 10).await;
    assert_eq!(texts(&agent.next().await), [""; 0]);
}

#[tokio::test]
async fn an_append_with_a_wrong_expected_end_is_a_conflict() {
    let mut durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    append(&mut agent, 0, Some(0), &["one"]).await;
    append(&mut agent, 1, Some(0), &["not this"]).await;
    // The conflict depends on a record that is not on disk yet.
    agent.expect_nothing().await;
    durable_node.sync();
    agent.next().await;
    let frame = agent.next().await;
    let failure = frame.failure();
    assert_eq!(
        (failure.code, failure.details),
        (ErrorCode::Conflict, &1_u64.to_le_bytes()[..])
    );
    append(&mut agent, 0, Some(1), &["two"]).await;
    let frame = durable_node.answer(&mut agent).await;
    assert_eq!(
        Appended::decode(&frame.payload),
        Ok(Appended { first: 1, next: 2 })
    );
}

#[tokio::test]
async fn a_conflict_makes_no_stream() {
    let durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    append(&mut agent, 0, Some(3), &["x"]).await;
    let frame = agent.next().await;
    assert_eq!(frame.failure().details, 0_u64.to_le_bytes());
    assert_eq!(
        durable_node.bench.node.streams().unwrap().list("", "", 10),
        Vec::new()
    );
}

#[tokio::test]
async fn stream_records_and_names_survive_a_power_failure() {
    let mut durable_node = DurableNode::new();
    let mut first = agent(&durable_node).await;
    append(&mut first, 0, None, &["one"]).await;
    durable_node.answer(&mut first).await;
    append(&mut first, 0, None, &["was not answered"]).await;
    first.expect_nothing().await;
    let mut durable_node = durable_node.crash();
    let mut second = agent(&durable_node).await;
    ask(&mut second, Kind::READ, 0, 0, 10).await;
    let texts = texts(&second.next().await);
    assert_eq!(texts[0], "0 one");
    append(&mut second, 0, None, &["two"]).await;
    let frame = durable_node.answer(&mut second).await;
    let first = Appended::decode(&frame.payload).unwrap().first;
    assert_eq!(first, texts.len() as u64);
    let streams = durable_node
        .bench
        .node
        .streams()
        .unwrap()
        .list("a/", "", 10);
    assert_eq!((&*streams[0].name, streams[0].next), ("a/b/log", first + 1));
    assert_eq!(
        durable_node
            .bench
            .node
            .streams()
            .unwrap()
            .list("b/", "", 10),
        Vec::new()
    );
}

#[tokio::test]
async fn a_follower_receives_stored_and_new_records_until_cancelled() {
    let mut durable_node = DurableNode::new();
    let mut reader = agent(&durable_node).await;
    ask(&mut reader, Kind::FOLLOW, 0, 1, 10).await;
    reader.expect_nothing().await;
    let mut writer = agent(&durable_node).await;
    append(&mut writer, 0, None, &["one", "two"]).await;
    durable_node.answer(&mut writer).await;
    let item = reader.next().await;
    assert!(item.header.flags.contains(Flags::MORE), "{item:?}");
    assert_eq!(texts(&item), ["1 two"]);
    append(&mut writer, 0, None, &["three"]).await;
    writer.expect_nothing().await;
    reader.expect_nothing().await;
    durable_node.sync();
    assert_eq!(texts(&reader.next().await), ["2 three"]);
    reader.frame(|out| wire::encode_cancel(tag(0), out)).await;
    assert_eq!(reader.next().await.failure().code, ErrorCode::Cancelled);
    append(&mut writer, 0, None, &["four"]).await;
    writer.next().await;
    durable_node.answer(&mut writer).await;
    reader.expect_nothing().await;
}

#[tokio::test]
async fn a_follower_receives_records_up_to_its_credit() {
    let mut durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    let records: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    let records: Vec<_> = records.iter().map(String::as_str).collect();
    append(&mut agent, 0, None, &records).await;
    durable_node.answer(&mut agent).await;
    ask(&mut agent, Kind::FOLLOW, 0, 0, 1).await;
    for number in 0..64 {
        assert_eq!(texts(&agent.next().await), [format!("{number} {number}")]);
    }
    agent.expect_nothing().await;
    let credit = Credit {
        messages: 3,
        bytes: 0,
    };
    agent.frame(|out| credit.encode(tag(0), out)).await;
    for number in 64..67 {
        assert_eq!(texts(&agent.next().await), [format!("{number} {number}")]);
    }
    agent.expect_nothing().await;
}

#[tokio::test]
async fn stream_requests_on_other_names_or_routes_are_refused() {
    let durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    agent.bind(2, "a/b/c/instance", Cast::Stream).await;
    agent.bind(3, "telpher/system/x", Cast::Stream).await;
    agent.bind(4, "a/b/log", Cast::Any).await;
    let read = Read {
        from: 0,
        records_max: 1,
        bytes_max: 1,
    };
    for route in 2..=5 {
        let message = Payload::body(&[]);
        let _ = message;
        agent
            .message(Kind::READ, Flags::NONE, route, tag(0), &read.encode())
            .await;
        let frame = agent.next().await;
        assert_eq!(frame.failure().code, ErrorCode::InvalidArgument, "{route}");
    }
    agent
        .message(Kind::REQUEST, Flags::NONE, 1, tag(0), b"x")
        .await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
    append(&mut agent, 0, None, &[]).await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
}

#[tokio::test]
async fn a_node_without_a_journal_refuses_appends_and_disk_writes() {
    let bench = crate::Bench::new();
    let mut agent = bench.agent("").await;
    agent.bind(1, "a/b/log", Cast::Stream).await;
    append(&mut agent, 0, None, &["x"]).await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Unsupported);
    agent.bind(2, "a/b/c", Cast::Any).await;
    agent
        .message(Kind::WRITE, Flags::NONE, 2, tag(0), b"x")
        .await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Unsupported);
}

#[tokio::test]
async fn an_append_with_a_wrong_record_count_is_a_protocol_error() {
    let durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    let mut body = Vec::new();
    Append::encode(None, &["x"], &mut body);
    body[8] = 200;
    agent
        .message(Kind::APPEND, Flags::NONE, 1, tag(0), &body)
        .await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Protocol);
}
