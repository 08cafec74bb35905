//! Streamed answers.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Door, Events};

const PATH: &str = "/v1/conversations/c-1/messages/a-1";
const JSONL: [(&str, &str); 1] = [("content-type", "application/jsonl")];

pub(crate) fn chunk(text: &str) -> String {
    json!({"type": "text-delta", "id": "t", "delta": text}).to_string()
}

pub(crate) const START: &str = r#"{"type":"text-start","id":"t"}"#;

/// An author who writes chunk by chunk.
pub(crate) struct Author(TcpStream);

impl Author {
    async fn open(door: &Door) -> Self {
        Self::of(door.address, "a-1").await
    }

    pub(crate) async fn of(address: SocketAddr, id: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let path = PATH.replace("a-1", id);
        let head = format!(
            "POST {path}/stream?from=bot HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/jsonl\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self(stream)
    }

    pub(crate) async fn write(&mut self, line: &str) {
        let piece = format!("{:x}\r\n{line}\n\r\n", line.len() + 1);
        self.0.write_all(piece.as_bytes()).await.unwrap();
    }

    /// What the door answers when the body has ended.
    pub(crate) async fn answer(&mut self) -> Value {
        // A door that has answered already may have closed the connection.
        let _ = self.0.write_all(b"0\r\n\r\n").await;
        let mut text = String::new();
        self.0.read_to_string(&mut text).await.unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

/// Reads on until an answer is over: its message, which is told before, and the pieces that still
/// came.
async fn ended(events: &mut Events) -> (Value, Vec<Value>) {
    let (mut message, mut deltas) = (None, Vec::new());
    loop {
        let event = events.next().await;
        match event.kind.as_str() {
            "head" | "stop" => {}
            "delta" => deltas.push(event.json()),
            "closed" => return (message.expect("it is told before"), deltas),
            "message" => message = Some(event.json()),
            other => panic!("{other}: {event:?}"),
        }
    }
}

async fn message(door: &Door, seq: usize) -> Value {
    let path = format!("/v1/conversations/c-1/messages?after={}&limit=1", seq - 1);
    door.get(&path).await.json()["messages"][0].clone()
}

#[tokio::test]
async fn a_streamed_answer_is_watched_chunk_by_chunk_and_becomes_one_message() {
    let door = Door::open().await;
    door.append_text("c-1", "hi").await;
    let mut events = door.follow("c-1", "1").await;
    assert_eq!(events.next().await.kind, "head");
    let mut author = Author::open(&door).await;
    author.write(START).await;
    author.write(&chunk("Hel")).await;
    let first = events.next().await;
    assert_eq!(
        (first.kind.as_str(), &first.json()["mid"]),
        ("delta", &json!("a-1"))
    );
    assert_eq!(
        first.json()["chunk"],
        serde_json::from_str::<Value>(START).unwrap()
    );
    let second = events.next().await;
    assert_eq!(second.json()["chunk"]["delta"], "Hel");
    // Another watcher resumes within the answer.
    let mut late = door.follow("c-1", &second.id).await;
    author.write(&chunk("lo")).await;
    author
        .write(r#"{"type":"finish","messageMetadata":{"model":"m"}}"#)
        .await;
    let answer = author.answer().await;
    assert_eq!(
        answer,
        json!({"seq": 2, "id": "a-1", "status": "complete", "head_seq": 2})
    );
    for events in [&mut events, &mut late] {
        let (message, deltas) = ended(events).await;
        assert_eq!(message["parts"][0]["text"], "Hello");
        assert!(
            deltas
                .iter()
                .all(|delta| delta["index"].as_u64() >= Some(2))
        );
    }
    let message = message(&door, 2).await;
    assert_eq!(
        (&message["role"], &message["from"]),
        (&json!("assistant"), &json!("bot"))
    );
    assert_eq!(message["metadata"], json!({"model": "m"}));
    assert_eq!(message.get("status"), None);
}

#[tokio::test]
async fn a_conversation_shows_its_open_answer_and_watchers_its_finish_chunk() {
    let door = Door::open().await;
    door.append_text("c-1", "hi").await;
    let conversation = async || door.get("/v1/conversations/c-1").await.json();
    assert_eq!(conversation().await["streaming"], Value::Null);
    let mut early = door.follow("c-1", "1").await;
    assert_eq!(early.next().await.kind, "head");
    let mut author = Author::open(&door).await;
    author.write(START).await;
    author.write(&chunk("Hello")).await;
    let draft = early.next().await.json()["draft"].clone();
    assert_eq!(
        conversation().await["streaming"],
        json!([{"draft": draft, "mid": "a-1", "from": "bot"}])
    );
    early.next().await;
    let mut late = door.follow("c-1", "1").await;
    while late.next().await.kind != "delta" {}
    let finish = json!({"type": "finish", "finishReason": "stop"});
    author.write(&finish.to_string()).await;
    author.answer().await;
    assert_eq!(conversation().await["streaming"], Value::Null);
    let mut after = door.follow("c-1", "1").await;
    for events in [&mut early, &mut late] {
        let closed = loop {
            let event = events.next().await;
            if event.kind == "closed" {
                break event.json();
            }
        };
        assert_eq!((&closed["draft"], &closed["chunk"]), (&draft, &finish));
    }
    // A watcher that comes after the answer is shown its message alone.
    assert_eq!(after.next().await.kind, "message");
    assert_eq!(after.next().await.kind, "head");
}

#[tokio::test]
async fn event_stream_and_json_lines_create_the_same_message() {
    let door = Door::open().await;
    let chunks = [
        START,
        &chunk("a\nb"),
        r#"{"type":"text-end","id":"t"}"#,
        r#"{"type":"finish"}"#,
    ];
    let lines = chunks.join("\n");
    let streamed = door
        .ask_with("POST", &format!("{PATH}/stream"), &JSONL, lines.as_bytes())
        .await;
    assert_eq!(streamed.status, 201, "{}", streamed.text());
    let events: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\r\n\r\n"))
        .collect();
    let events = format!(": hello\n\n{events}data: [DONE]\n\n");
    let headers = [("content-type", "text/event-stream")];
    let path = PATH.replace("a-1", "a-2");
    let streamed = door
        .ask_with(
            "POST",
            &format!("{path}/stream"),
            &headers,
            events.as_bytes(),
        )
        .await;
    assert_eq!(streamed.status, 201, "{}", streamed.text());
    assert_eq!(
        message(&door, 1).await["parts"],
        message(&door, 2).await["parts"]
    );
    assert_eq!(message(&door, 1).await["parts"][0]["text"], "a\nb");
}

#[tokio::test]
async fn aborted_interrupted_or_invalid_answer_stores_the_received_chunks() {
    let door = Door::open().await;
    let stream = async |id: &str, lines: &[&str]| {
        let path = PATH.replace("a-1", id);
        let body = lines.join("\n");
        door.ask_with("POST", &format!("{path}/stream"), &JSONL, body.as_bytes())
            .await
    };
    let half = chunk("half");
    let aborted = stream("a-1", &[START, &half, r#"{"type":"abort"}"#])
        .await
        .json();
    assert_eq!(
        (&aborted["seq"], &aborted["status"]),
        (&json!(1), &json!("aborted"))
    );
    let ended = stream("a-2", &[START, &half]).await.json();
    assert_eq!(
        (&ended["seq"], &ended["status"]),
        (&json!(2), &json!("interrupted"))
    );
    let wrong = stream(
        "a-3",
        &[
            START,
            &half,
            r#"{"type":"text-delta","id":"u","delta":"x"}"#,
        ],
    )
    .await;
    let detail = wrong.problem(400, "invalid_argument");
    assert!(detail.contains("send `text-start` first"), "{detail}");
    assert_eq!(
        (&wrong.json()["seq"], &wrong.json()["chunk"]),
        (&json!(3), &json!(2))
    );
    let large = chunk(&"x".repeat(600 << 10));
    let wrong = stream("a-4", &[START, &half, &large, &large]).await;
    wrong.problem(413, "too_large");
    let failed = [START, &half, r#"{"type":"error","errorText":"gone"}"#];
    assert_eq!(stream("a-5", &failed).await.json()["status"], "interrupted");
    for seq in 1..=5 {
        let message = message(&door, seq).await;
        let text = message["parts"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{seq}: {message}"));
        assert!(text.starts_with("half"), "{seq}");
        let status = if seq == 1 { "aborted" } else { "interrupted" };
        assert_eq!(message["status"], status);
    }
    assert_eq!(
        message(&door, 5).await["metadata"],
        json!({"error": "gone"})
    );
    // The id is taken, and says by what.
    let again = stream("a-1", &[START]).await;
    again.problem(409, "id_reused");
    assert_eq!(again.json()["seq"], 1);
}

#[tokio::test]
async fn an_answer_ends_when_its_author_disconnects_or_it_is_stopped() {
    let door = Door::open().await;
    door.append_text("c-1", "hi").await;
    let mut events = door.follow("c-1", "1").await;
    assert_eq!(events.next().await.kind, "head");
    let mut author = Author::open(&door).await;
    author.write(START).await;
    author.write(&chunk("lost")).await;
    for _ in 0..2 {
        assert_eq!(events.next().await.kind, "delta");
    }
    drop(author);
    let (message, _) = ended(&mut events).await;
    assert_eq!(message["status"], "interrupted");
    assert_eq!(message["parts"][0]["text"], "lost");

    let stop = format!("{}/stop", PATH.replace("a-1", "a-2"));
    door.ask("POST", &stop, &Value::Null)
        .await
        .problem(404, "not_found");
    let mut author = TcpStream::connect(door.address).await.unwrap();
    let head = format!(
        "POST {}/stream HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/jsonl\r\ncontent-length: 1000\r\n\r\n{START}\n",
        PATH.replace("a-1", "a-2")
    );
    author.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(events.next().await.kind, "delta");
    assert_eq!(door.ask("POST", &stop, &Value::Null).await.status, 202);
    let mut answer = Author(author).answer().await;
    assert_eq!(answer["status"].take(), "stopped");
    let (message, _) = ended(&mut events).await;
    assert_eq!(message["status"], "stopped");
}

#[tokio::test]
async fn an_answer_that_outgrows_a_record_is_refused_while_it_streams() {
    let disk = journal::disk::SimulatedDisk::new(7);
    let options = node::StoreOptions::default();
    // Records of 8 KiB.
    let door = Door::with_segments(disk, options, 1, 16 << 10).await;
    // Many small pieces: it is the chunks that are too much. A few large ones: it is the message.
    for (index, piece) in [(1, "x".to_owned()), (2, "x".repeat(900))] {
        let mut lines = vec![START.to_owned()];
        lines.extend(std::iter::repeat_n(chunk(&piece), 200));
        let path = PATH.replace("a-1", &format!("a-{index}"));
        let body = lines.join("\n");
        let answer = door
            .ask_with("POST", &format!("{path}/stream"), &JSONL, body.as_bytes())
            .await;
        answer.problem(413, "too_large");
        assert_eq!(answer.json()["seq"], index);
        let message = message(&door, index).await;
        assert_eq!(message["status"], "interrupted");
        let text = message["parts"][0]["text"].as_str().unwrap();
        assert!(text.len() >= 50 * piece.len().min(36), "{}", text.len());
    }
    // The same for an author who is lost, and for messages that come whole.
    let mut author = Author::of(door.address, "a-3").await;
    author.write(START).await;
    author.write(&chunk(&"y".repeat(2_000))).await;
    let mut events = door.follow("c-1", "2").await;
    while events.next().await.kind != "delta" {}
    drop(author);
    assert_eq!(ended(&mut events).await.0["status"], "interrupted");
    let large = crate::text_batch(&"z".repeat(5_000));
    let answer = door
        .ask("POST", "/v1/conversations/c-1/messages", &large)
        .await;
    answer.problem(413, "too_large");
    assert_eq!(door.append_text("c-1", &"z".repeat(3_000)).await, 4);
}

#[tokio::test]
async fn invalid_stream_requests_are_refused_and_create_no_conversation() {
    let door = Door::open().await;
    let path = format!("{PATH}/stream");
    let headers = [("content-type", "application/json")];
    door.ask_with("POST", &path, &headers, b"{}")
        .await
        .problem(415, "invalid_argument");
    let answer = door
        .ask_with("POST", &format!("{path}?rle=x"), &JSONL, b"")
        .await;
    answer.problem(400, "invalid_argument");
    let odd = "/v1/conversations/c-1/messages/a%20b/stream";
    door.ask_with("POST", odd, &JSONL, b"")
        .await
        .problem(400, "invalid_argument");
    door.get("/v1/conversations/c-1/messages")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn a_stream_with_an_invalid_first_chunk_leaves_no_message() {
    let door = Door::open().await;
    door.append_text("c-1", "hi").await;
    let mut events = door.follow("c-1", "1").await;
    for body in [
        "{\"type\":\n",
        "[]\n",
        "{\"type\":\"text-delta\",\"id\":\"t\",\"delta\":\"x\"}\n",
    ] {
        let path = "/v1/conversations/c-1/messages/a-1/stream";
        let answer = door.ask_with("POST", path, &JSONL, body.as_bytes()).await;
        assert_eq!(
            (answer.status, &answer.json()["chunk"]),
            (400, &json!(0)),
            "{body}"
        );
        assert_eq!(answer.json()["seq"], Value::Null);
    }
    assert_eq!(
        door.get("/v1/conversations/c-1").await.json()["head_seq"],
        1
    );
    // Watchers saw nothing of it, and the id is free for another message.
    let message = json!({"id": "a-1", "role": "assistant", "content": "well"});
    let path = "/v1/conversations/c-1/messages";
    let answer = door
        .ask("POST", path, &json!({"messages": [message]}))
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(events.next().await.kind, "head");
    let event = events.next().await;
    assert_eq!(
        (event.kind.as_str(), &event.json()["id"]),
        ("message", &json!("a-1"))
    );
}

#[tokio::test]
async fn a_streamed_body_is_read_to_its_end_and_its_connection_reused() {
    let door = Door::open().await;
    door.append_text("c-1", "Hello").await;
    let mut events = door.follow("c-1", "1").await;
    let mut stream = TcpStream::connect(door.address).await.unwrap();
    let head = format!(
        "POST {PATH}/stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/event-stream\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    for chunk in [START, &chunk("Hi"), r#"{"type":"finish"}"#] {
        let event = piece(&format!("data: {chunk}\n\n"));
        stream.write_all(event.as_bytes()).await.unwrap();
        if chunk == START {
            // A watcher that comes to the answer after its end is shown the message alone.
            while events.next().await.kind != "delta" {}
        }
    }
    // The message is there before its author has written the rest.
    let (message, _) = ended(&mut events).await;
    assert_eq!(message["parts"][0]["text"], "Hi");
    let rest = piece("data: [DONE]\n\n") + "0\r\n\r\n";
    stream.write_all(rest.as_bytes()).await.unwrap();
    let next = "GET /v1/conversations/c-1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(next.as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert!(answers.starts_with("HTTP/1.1 201 "), "{answers}");
    assert!(answers.contains(r#""status":"complete""#), "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 1, "{answers}");
}
