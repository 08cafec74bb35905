//! Resuming a watch: no gaps and no duplicates, also within a streamed answer.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::answer::{Author, START, chunk};
use crate::socket::Socket;
use crate::{Door, text_batch};

const ANSWERS: u64 = 6;
const PIECES: u64 = 40;
const TEXTS: u64 = 60;

/// Events that a watcher has seen; checks that each continues the ones before.
#[derive(Default)]
struct DraftPosition {
    seq: u64,
    ids: HashSet<String>,
    /// The next piece of each draft, and the id of its message.
    drafts: HashMap<u64, (u64, String)>,
    closed: HashSet<u64>,
    position: String,
}

impl DraftPosition {
    fn apply(&mut self, event: &Value) {
        let (seq, position) = (self.seq, event["position"].as_str().unwrap());
        match event["op"].as_str().unwrap() {
            "message" => {
                assert_eq!(event["message"]["seq"], seq + 1, "{event}");
                self.seq += 1;
                self.ids
                    .insert(event["message"]["id"].as_str().unwrap().to_owned());
            }
            "delta" => {
                let delta = &event["delta"];
                let id = delta["mid"].as_str().unwrap();
                assert!(!self.ids.contains(id), "its message was shown: {event}");
                let draft = delta["draft"].as_u64().unwrap();
                let (next, _) = self.drafts.entry(draft).or_insert((0, id.to_owned()));
                assert_eq!(delta["index"], *next, "{event}");
                *next += 1;
            }
            "closed" => {
                let draft = event["closed"]["draft"].as_u64().unwrap();
                let (_, id) = &self.drafts[&draft];
                assert!(self.ids.contains(id), "before its message: {event}");
                assert!(self.closed.insert(draft), "twice: {event}");
            }
            "head" => assert_eq!(event["head_seq"], seq),
            other => panic!("{other}: {event}"),
        }
        position.clone_into(&mut self.position);
    }

    fn watch(&self) -> Value {
        json!({"op": "watch", "conv": "c-1", "position": self.position})
    }

    fn is_complete(&self) -> bool {
        self.seq == 1 + ANSWERS + TEXTS && self.closed.len() == self.drafts.len()
    }
}

#[tokio::test]
async fn a_resumed_watch_neither_skips_nor_repeats_events() {
    let door = Door::open().await;
    door.append_text("c-1", "first").await;
    let address = door.address;
    let answers = tokio::spawn(async move {
        for number in 0..ANSWERS {
            let mut author = Author::of(address, &format!("a-{number}")).await;
            author.write(START).await;
            for piece in 0..PIECES {
                author.write(&chunk(&piece.to_string())).await;
            }
            author.write(r#"{"type":"finish"}"#).await;
            assert_eq!(author.answer().await["status"], "complete");
        }
    });
    let texts = tokio::spawn(async move {
        let headers = [("content-type", "application/json")];
        let path = "/v1/conversations/c-1/messages";
        for number in 0..TEXTS {
            let body = text_batch(&number.to_string()).to_string();
            let sent = crate::client::ask(address, "POST", path, &headers, body.as_bytes()).await;
            assert_eq!(sent.status, 201);
        }
    });
    let mut seen = DraftPosition {
        position: "0".to_owned(),
        ..DraftPosition::default()
    };
    let mut socket = Socket::open(&door).await;
    for round in 1.. {
        socket.send(&seen.watch()).await;
        // Disconnects at an arbitrary event.
        for _ in 0..(round * 7) % 23 {
            if seen.is_complete() {
                break;
            }
            seen.apply(&socket.next().await);
        }
        if seen.is_complete() {
            break;
        }
        if round % 2 == 0 {
            socket = Socket::open(&door).await;
            continue;
        }
        socket.send(&json!({"op": "unwatch", "conv": "c-1"})).await;
        loop {
            let event = socket.next().await;
            if event["op"] == "done" {
                break;
            }
            seen.apply(&event);
        }
    }
    answers.await.unwrap();
    texts.await.unwrap();
}

#[tokio::test]
async fn an_answer_interrupted_by_a_restart_becomes_a_message_for_resumed_watchers() {
    let door = Door::open().await;
    door.append_text("c-1", "first").await;
    let mut author = Author::of(door.address, "a-1").await;
    author.write(START).await;
    author.write(&chunk("half")).await;
    let mut seen = DraftPosition {
        position: "0".to_owned(),
        ..DraftPosition::default()
    };
    let mut socket = Socket::open(&door).await;
    socket.send(&seen.watch()).await;
    while seen.drafts.values().all(|(next, _)| *next < 2) {
        seen.apply(&socket.next().await);
    }
    assert!(seen.position.starts_with("1:"), "{}", seen.position);
    // What is in memory only is lost.
    let disk = door.disk.fork();
    let door = Door::on(disk, node::StoreOptions::default(), 2).await;
    let mut socket = Socket::open(&door).await;
    socket.send(&seen.watch()).await;
    while seen.closed.is_empty() {
        seen.apply(&socket.next().await);
    }
    assert_eq!((seen.seq, seen.position.as_str()), (2, "2"));
    assert!(seen.ids.contains("a-1"));
    assert_eq!(door.append_text("c-1", "next").await, 3);
    seen.apply(&socket.next().await);
}
