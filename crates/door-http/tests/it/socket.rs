//! Many conversations over one WebSocket, tested with a third-party client.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::Door;

pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub(crate) async fn open(door: &Door) -> Self {
        let stream = TcpStream::connect(door.address).await.unwrap();
        let url = format!("ws://{}/v1/ws", door.address);
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        Self(socket)
    }

    pub(crate) async fn send(&mut self, command: &Value) {
        self.raw(Message::text(command.to_string())).await;
    }

    async fn raw(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    async fn next_message(&mut self) -> Message {
        let next = tokio::time::timeout(std::time::Duration::from_secs(20), self.0.next());
        next.await.unwrap().unwrap().unwrap()
    }

    pub(crate) async fn next(&mut self) -> Value {
        match self.next_message().await {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn append(&mut self, tag: Value, conversation: &str, text: &str) {
        let messages = json!([{"role": "user", "content": text}]);
        let command = json!({
            "op": "append", "ref": tag, "conv": conversation, "messages": messages,
        });
        self.send(&command).await;
    }
}

#[tokio::test]
async fn pipelined_websocket_appends_are_answered_in_order() {
    let door = Door::open().await;
    let mut socket = Socket::open(&door).await;
    for number in 0..500 {
        let conversation = format!("c-{}", number % 3);
        socket.append(json!(number), &conversation, "x").await;
    }
    for number in 0..500_u64 {
        let ack = socket.next().await;
        let seq = number / 3 + 1;
        assert_eq!(
            (&ack["op"], &ack["ref"]),
            (&json!("ack"), &json!(number)),
            "{ack}"
        );
        assert_eq!(
            (&ack["first_seq"], &ack["last_seq"]),
            (&json!(seq), &json!(seq))
        );
        assert_eq!(ack["messages"][0]["seq"], seq);
    }
}

#[tokio::test]
async fn websocket_retries_and_expected_heads_work_as_over_http() {
    let door = Door::open().await;
    let mut socket = Socket::open(&door).await;
    let append = |tag: &str, text: &str, expect: Option<u64>| {
        json!({"op": "append", "ref": tag, "conv": "default/default/c-1", "expect": expect,
            "messages": [{"id": "m-1", "role": "user", "content": text}]})
    };
    // The second is sent before the first can be on the disk.
    socket.send(&append("a", "hi", Some(0))).await;
    socket.send(&append("b", "hi", Some(0))).await;
    socket.send(&append("c", "other", None)).await;
    let first = socket.next().await;
    assert_eq!(
        (&first["ref"], &first["deduplicated"]),
        (&json!("a"), &json!(0))
    );
    let second = socket.next().await;
    assert_eq!(
        (&second["ref"], &second["deduplicated"]),
        (&json!("b"), &json!(1))
    );
    assert_eq!(second["messages"], json!([{"seq": 1, "id": "m-1"}]));
    let third = socket.next().await;
    assert_eq!(
        (&third["op"], &third["ref"]),
        (&json!("error"), &json!("c"))
    );
    assert_eq!(
        (&third["code"], &third["status"]),
        (&json!("id_reused"), &json!(409))
    );
    let mut late = append("d", "new", Some(7));
    late["messages"][0]["id"] = json!("m-2");
    socket.send(&late).await;
    let fourth = socket.next().await;
    assert_eq!(
        (&fourth["code"], &fourth["head_seq"]),
        (&json!("conflict"), &json!(1))
    );
}

#[tokio::test]
async fn conversations_are_watched_together_while_others_write() {
    const COUNT: u64 = 150;
    let door = Door::open().await;
    let mut writer = Socket::open(&door).await;
    for conversation in ["c-1", "c-2"] {
        writer.append(json!(0), conversation, "1").await;
        writer.next().await;
    }
    let mut reader = Socket::open(&door).await;
    reader.send(&json!({"op": "watch", "conv": "c-1"})).await;
    reader
        .send(&json!({"op": "watch", "conv": "c-2", "after": 1}))
        .await;
    let writing = tokio::spawn(async move {
        for number in 2..=COUNT {
            for conversation in ["c-1", "c-2"] {
                writer
                    .append(json!(number), conversation, &number.to_string())
                    .await;
            }
        }
        for _ in 2..=COUNT {
            writer.next().await;
            writer.next().await;
        }
    });
    let (mut seen, mut heads) = ([0, 1], [0, 0]);
    while seen != [COUNT; 2] {
        let event = reader.next().await;
        let index = usize::from(event["conv"] == "c-2");
        match event["op"].as_str().unwrap() {
            "head" => heads[index] += 1,
            "message" => {
                seen[index] += 1;
                assert_eq!(event["message"]["seq"], seen[index], "{event}");
                let text = &event["message"]["parts"][0]["text"];
                assert_eq!(*text, seen[index].to_string());
            }
            other => panic!("{other}: {event}"),
        }
    }
    assert!(heads.iter().all(|count| *count <= 1), "{heads:?}");
    writing.await.unwrap();
}

#[tokio::test]
async fn an_unwatched_conversation_sends_no_more_messages() {
    let door = Door::open().await;
    door.append_text("c-1", "one").await;
    let mut socket = Socket::open(&door).await;
    let watch = json!({"op": "watch", "conv": "c-1", "after": 1});
    socket.send(&watch).await;
    assert_eq!(socket.next().await["op"], "head");
    socket.send(&watch).await;
    assert_eq!(socket.next().await["code"], "conflict");
    socket
        .send(&json!({"op": "unwatch", "ref": [1], "conv": "c-1"}))
        .await;
    assert_eq!(
        socket.next().await,
        json!({"op": "done", "ref": [1], "conv": "c-1"})
    );
    socket.append(json!("x"), "c-1", "two").await;
    assert_eq!(socket.next().await["op"], "ack");
    socket.send(&watch).await;
    assert_eq!(socket.next().await["message"]["seq"], 2);
    assert_eq!(socket.next().await["op"], "head");
    socket
        .send(&json!({"op": "watch", "conv": "nothing"}))
        .await;
    assert_eq!(socket.next().await["code"], "not_found");
}

#[tokio::test]
async fn invalid_commands_are_answered_with_errors_and_the_connection_stays_open() {
    let door = Door::open().await;
    let mut socket = Socket::open(&door).await;
    for (command, expected) in [
        ("x", "malformed JSON"),
        ("[]", "invalid type: array, expected an object"),
        (
            r#"{"op":"append","conv":"c-1"}"#,
            "`append` requires `messages`",
        ),
        (
            r#"{"op":"apend","conv":"c-1"}"#,
            "there is no op `apend`; is `append` meant?",
        ),
        (
            r#"{"op":"watch","conv":"c-1","aftr":1}"#,
            "is `after` meant?",
        ),
        (
            r#"{"op":"watch","conv":"c-1","expect":1}"#,
            "`watch` does not accept `expect`",
        ),
        (
            r#"{"op":"watch","conv":"c-1","position":"1.2"}"#,
            "`position`: invalid position",
        ),
        (
            r#"{"op":"watch","conv":"c-1","position":"1","after":1}"#,
            "cannot be combined",
        ),
        (
            r#"{"op":"watch","conv":"a b"}"#,
            "`conv`: name `a b` contains",
        ),
        (
            r#"{"op":"append","conv":"c-1","messages":[{"role":1}]}"#,
            "`messages[0].role`",
        ),
    ] {
        socket.raw(Message::text(command)).await;
        let error = socket.next().await;
        assert_eq!(
            (&error["op"], &error["status"]),
            (&json!("error"), &json!(400))
        );
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{command}: {detail}");
    }
    // An invalid command is answered with its `ref` if that can be parsed.
    socket.raw(Message::text(r#"{"ref":"r9","zzz":1}"#)).await;
    assert_eq!(socket.next().await["ref"], "r9");
    let binary = json!({"op": "append", "ref": 1, "conv": "c-1",
        "messages": [{"role": "user", "content": "x"}]});
    socket.raw(Message::binary(binary.to_string())).await;
    assert_eq!(socket.next().await["op"], "ack");
}

#[tokio::test]
async fn a_command_that_is_too_large_ends_the_connection_with_its_reason() {
    let door = Door::open().await;
    let mut socket = Socket::open(&door).await;
    // The other side may be gone before all of it is sent.
    let _ = socket.0.send(Message::text("x".repeat(12 << 20))).await;
    let end = tokio::time::timeout(std::time::Duration::from_secs(20), socket.0.next()).await;
    if let Some(Ok(Message::Close(Some(frame)))) = end.unwrap() {
        assert_eq!(frame.code, CloseCode::Size);
    }
    assert_eq!(door.append_text("c-1", "others go on").await, 1);
}

#[tokio::test]
async fn a_stalled_client_blocks_no_other_and_later_receives_every_message() {
    let door = Door::open().await;
    let large = "x".repeat(100_000);
    for _ in 0..100 {
        door.append_text("c-1", &large).await;
    }
    let mut stuck = Socket::open(&door).await;
    stuck.send(&json!({"op": "watch", "conv": "c-1"})).await;
    let mut other = Socket::open(&door).await;
    for number in 0..50 {
        other.append(json!(number), "c-1", "y").await;
        assert_eq!(other.next().await["ref"], number);
    }
    // It gets everything when it reads again.
    let mut seq = 0;
    while seq < 150 {
        let event = stuck.next().await;
        if event["op"] == "message" {
            seq += 1;
            assert_eq!(event["message"]["seq"], seq);
        }
    }
}

#[tokio::test]
async fn a_plain_get_of_the_websocket_path_is_refused() {
    let door = Door::open().await;
    let answer = door.get("/v1/ws").await;
    answer.problem(400, "invalid_argument");
}
