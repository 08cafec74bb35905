//! Following by server-sent events.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{Door, Events, text_batch};

#[tokio::test]
async fn stored_messages_precede_the_head_event_and_new_messages() {
    let door = Door::open().await;
    door.append_text("c-1", "one").await;
    door.append_text("c-1", "two").await;
    let mut events = door.follow("c-1", "0").await;
    for seq in 1..=2 {
        let event = events.next().await;
        assert_eq!(
            (event.kind.as_str(), event.id),
            ("message", format!("{seq}"))
        );
    }
    let head = events.next().await;
    assert_eq!((head.kind.as_str(), head.id.as_str()), ("head", "2"));
    assert_eq!(head.json(), json!({"head_seq": 2}));
    door.append_text("c-1", "three").await;
    let event = events.next().await;
    assert_eq!(event.json()["parts"][0]["text"], "three");
    // Resumed after message 2.
    let mut events = door.follow("c-1", "2").await;
    assert_eq!(events.next().await.id, "3");
}

#[tokio::test]
async fn replay_while_others_write_is_exact() {
    const COUNT: u64 = 400;
    let door = Door::open().await;
    door.append_text("c-1", "first").await;
    let address = door.address;
    let writer = tokio::spawn(async move {
        let headers = [("content-type", "application/json")];
        let path = "/v1/conversations/c-1/messages";
        for number in 2..=COUNT {
            let body = text_batch(&number.to_string()).to_string();
            let sent = crate::client::ask(address, "POST", path, &headers, body.as_bytes()).await;
            assert_eq!(sent.status, 201);
        }
    });
    // Followers come at any time, leave and come back where they were.
    let mut followers = tokio::task::JoinSet::new();
    for step in [7, 31, 400] {
        followers.spawn(async move {
            let mut after = 0;
            while after < COUNT {
                let path = format!("/v1/conversations/c-1/messages?after={after}");
                let headers = [("accept", "text/event-stream")];
                let mut events = Events::open(address, &path, &headers).await;
                let until = (after + step).min(COUNT);
                let messages = events.messages(after, until).await;
                for (message, seq) in messages
                    .iter()
                    .zip(after + 1..)
                    .skip(usize::from(after == 0))
                {
                    assert_eq!(message["parts"][0]["text"], seq.to_string());
                }
                after = until;
            }
        });
    }
    followers.join_all().await;
    writer.await.unwrap();
}

#[tokio::test]
async fn a_stalled_follower_does_not_block_other_clients() {
    let door = Door::open().await;
    let large = "x".repeat(100_000);
    door.append_text("c-1", &large).await;
    let path = "/v1/conversations/c-1/messages";
    let mut stuck = tokio::net::TcpStream::connect(door.address).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
    stuck.write_all(request.as_bytes()).await.unwrap();
    // Far more than the buffers of a socket take.
    for _ in 0..150 {
        door.append_text("c-1", &large).await;
    }
    let mut events = door.follow("c-1", "0").await;
    assert_eq!(events.messages(0, 151).await.len(), 151);
    assert_eq!(door.append_text("c-2", "elsewhere").await, 1);
    drop(stuck);
}

#[tokio::test]
async fn an_invalid_position_to_follow_from_is_refused() {
    let door = Door::open().await;
    door.append_text("c-1", "one").await;
    let ask = async |query: &str, id: &str| {
        let path = format!("/v1/conversations/c-1/messages{query}");
        let headers = [("accept", "text/event-stream"), ("last-event-id", id)];
        door.ask_with("GET", &path, &headers, b"").await
    };
    ask("", "x").await.problem(400, "invalid_argument");
    ask("", "2").await.problem(400, "invalid_argument");
    ask("?last=2", "0").await.problem(400, "invalid_argument");
    ask("?limit=2", "0").await.problem(400, "invalid_argument");
    let path = "/v1/conversations/none/messages";
    let headers = [("accept", "text/event-stream")];
    door.ask_with("GET", path, &headers, b"")
        .await
        .problem(404, "not_found");
}
