use model::ErrorCode;
use wire::{
    Append, AppendedMessages, Cast, Credit, Extract, Flags, Kind, Message, NewMessage, Payload,
    Read,
};

use crate::agent::{Agent, Frame, tag};
use crate::durable_node::DurableNode;

async fn agent(durable_node: &DurableNode) -> Agent {
    let mut agent = durable_node.bench.agent("").await;
    agent.bind(1, "a/b/talk", Cast::Conversation).await;
    agent
}

pub(crate) fn new<'a>(id: &'a str, parts: &'a str) -> NewMessage<'a> {
    NewMessage {
        id,
        role: "user",
        from: "alice",
        tokens: None,
        metadata: b"{}",
        parts: parts.as_bytes(),
    }
}

pub(crate) async fn append(
    agent: &mut Agent,
    slot: u32,
    expected: Option<u64>,
    messages: &[NewMessage<'_>],
) {
    let records: Vec<_> = messages
        .iter()
        .map(|message| {
            let mut record = Vec::new();
            message.encode(&mut record);
            record
        })
        .collect();
    let mut body = Vec::new();
    Append::encode(expected, &records, &mut body);
    agent
        .message(Kind::APPEND, Flags::NONE, 1, tag(slot), &body)
        .await;
}

pub(crate) async fn ask(agent: &mut Agent, kind: Kind, slot: u32, from: u64, records_max: u32) {
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
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let extract = Extract::decode(&frame.payload).unwrap();
    let told = extract.records().map(|record| {
        let message = Message::decode(record.bytes).unwrap();
        assert_eq!((message.role, message.from), ("user", "alice"));
        assert_eq!((message.status, message.metadata), (0, &b"{}"[..]));
        format!("{} {}", record.offset, message.id)
    });
    told.collect()
}

fn appended(frame: &Frame) -> (u64, u64, u32) {
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let appended = AppendedMessages::decode(&frame.payload).unwrap();
    (appended.first, appended.next, appended.deduplicated)
}

#[tokio::test]
async fn conversation_append_is_acknowledged_and_readable_once_durable() {
    let mut durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    let batch = [
        new("one", r#"[{"type":"text","text":"1"}]"#),
        new("two", "[]"),
    ];
    append(&mut agent, 0, Some(0), &batch).await;
    ask(&mut agent, Kind::READ, 1, 0, 10).await;
    assert_eq!(texts(&agent.next().await), [""; 0]);
    agent.expect_nothing().await;
    durable_node.sync();
    assert_eq!(appended(&agent.next().await), (1, 3, 0));
    // A retry is answered like the first, regardless of its expected head.
    append(&mut agent, 0, Some(0), &batch).await;
    assert_eq!(appended(&agent.next().await), (1, 3, 2));
    ask(&mut agent, Kind::READ, 0, 0, 10).await;
    let frame = agent.next().await;
    assert_eq!(texts(&frame), ["1 one", "2 two"]);
    let extract = Extract::decode(&frame.payload).unwrap();
    assert_eq!((extract.start, extract.next), (1, 3));
    let record = extract.records().next().unwrap();
    assert_eq!(record.time_ms, 1_700_000_000_000);
    let message = Message::decode(record.bytes).unwrap();
    assert_eq!(message.parts, batch[0].parts);
    assert!(message.is_estimated && message.tokens > 0);
    ask(&mut agent, Kind::READ, 0, 2, 10).await;
    assert_eq!(texts(&agent.next().await), ["2 two"]);
    ask(&mut agent, Kind::READ, 0, 1, 1).await;
    assert_eq!(texts(&agent.next().await), ["1 one"]);
}

#[tokio::test]
async fn append_without_a_message_id_returns_the_generated_id() {
    let mut durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    let batch = [new("", "[]"), new("named", "[]"), new("", "[]")];
    append(&mut agent, 0, None, &batch).await;
    let frame = durable_node.answer(&mut agent).await;
    assert_eq!(appended(&frame), (1, 4, 0));
    let told = AppendedMessages::decode(&frame.payload).unwrap().made;
    let told: Vec<_> = told.iter().map(str::to_owned).collect();
    assert_eq!(told.len(), 2);
    ask(&mut agent, Kind::READ, 0, 0, 10).await;
    let expected = [
        format!("1 {}", told[0]),
        "2 named".to_owned(),
        format!("3 {}", told[1]),
    ];
    assert_eq!(texts(&agent.next().await), expected);
    // Under the id that it was told a message is there already.
    append(&mut agent, 0, None, &[new(&told[0], "[]")]).await;
    assert_eq!(appended(&agent.next().await), (1, 2, 1));
}

#[tokio::test]
async fn append_conflict_reports_the_stored_sequence_once_durable() {
    let mut durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    append(&mut agent, 0, None, &[new("one", "[]")]).await;
    append(&mut agent, 1, Some(0), &[new("two", "[]")]).await;
    append(&mut agent, 2, None, &[new("one", "[1]")]).await;
    append(&mut agent, 3, None, &[new("one", "[{}]")]).await;
    // Parts that are none are told at once.
    let refused = agent.next().await;
    assert_eq!(refused.header.correlation, tag(2));
    assert_eq!(refused.failure().code, ErrorCode::InvalidArgument);
    agent.expect_nothing().await;
    durable_node.sync();
    assert_eq!(appended(&agent.next().await), (1, 2, 0));
    for code in [ErrorCode::Conflict, ErrorCode::IdReused] {
        let frame = agent.next().await;
        let failure = frame.failure();
        assert_eq!(failure.code, code);
        assert_eq!(failure.details, 1_u64.to_le_bytes());
    }
}

#[tokio::test]
async fn a_missing_conversation_is_not_found_but_can_be_followed() {
    let mut durable_node = DurableNode::new();
    let mut reader = agent(&durable_node).await;
    ask(&mut reader, Kind::READ, 0, 0, 10).await;
    assert_eq!(reader.next().await.failure().code, ErrorCode::NotFound);
    ask(&mut reader, Kind::FOLLOW, 0, 0, 10).await;
    reader.expect_nothing().await;
    let mut writer = agent(&durable_node).await;
    for (slot, id) in ["one", "two", "three"].iter().enumerate() {
        append(&mut writer, slot as u32, None, &[new(id, "[]")]).await;
        durable_node.answer(&mut writer).await;
        let frame = reader.next().await;
        assert!(frame.header.flags.contains(Flags::MORE));
        assert_eq!(texts(&frame), [format!("{} {id}", slot + 1)]);
        let credit = Credit {
            messages: 1,
            bytes: 0,
        };
        reader.frame(|out| credit.encode(tag(0), out)).await;
    }
}

#[tokio::test]
async fn messages_and_sequence_numbers_survive_a_power_failure() {
    let mut durable_node = DurableNode::new();
    let mut first = agent(&durable_node).await;
    append(&mut first, 0, None, &[new("one", "[]")]).await;
    durable_node.answer(&mut first).await;
    append(&mut first, 0, None, &[new("unanswered", "[]")]).await;
    first.expect_nothing().await;
    let mut durable_node = durable_node.crash();
    let mut second = agent(&durable_node).await;
    append(&mut second, 0, None, &[new("one", "[]"), new("two", "[]")]).await;
    let (first, next, deduplicated) = appended(&durable_node.answer(&mut second).await);
    assert_eq!((first, deduplicated), (1, 1));
    ask(&mut second, Kind::READ, 0, 1, 10).await;
    let texts = texts(&second.next().await);
    assert_eq!(texts.len() as u64, next - 1);
    assert_eq!(texts.first().map(String::as_str), Some("1 one"));
    assert_eq!(*texts.last().unwrap(), format!("{} two", next - 1));
}

#[tokio::test]
async fn invalid_frames_for_a_conversation_are_refused() {
    let durable_node = DurableNode::new();
    let mut agent = agent(&durable_node).await;
    let payload = Payload::body(b"x");
    agent
        .frame(|out| payload.encode(Kind::SEND, Flags::REPORT, 1, tag(0), out))
        .await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
    // A batch may have no message at all, which is none; one that is cut short ends the connection.
    append(&mut agent, 0, None, &[]).await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
    let mut body = Vec::new();
    Append::encode(None, &[b"\x01"], &mut body);
    agent
        .message(Kind::APPEND, Flags::NONE, 1, tag(0), &body)
        .await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Protocol);
}
