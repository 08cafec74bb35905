//! A node that is killed repeatedly in the middle of clears and retractions: each of them happened as
//! a whole or not at all, and what was acknowledged holds.

use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::quotas::HttpConnection;
use crate::support::{Node, Place};

const KILLS: usize = 20;
const WRITERS: usize = 3;

/// Maximum number of acknowledged requests between a start and a kill.
const ACKS_MAX: usize = 100;

/// The content of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    /// The numbers of the messages that are there.
    live: Vec<u64>,
    head: u64,
}

/// A request that changes a conversation.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Appends this number of messages.
    Append(u64),
    Clear,
    /// Retracts this number of newest messages.
    Retract(u64),
}

impl Change {
    fn random() -> Self {
        match fastrand::u8(..6) {
            0..3 => Self::Append(fastrand::u64(1..=3)),
            3..5 => Self::Retract(fastrand::u64(1..=3)),
            _ => Self::Clear,
        }
    }

    /// Returns the content after the change.
    fn apply(self, content: &Content) -> Content {
        let mut after = content.clone();
        match self {
            Self::Append(count) => {
                after.live.extend(content.head + 1..=content.head + count);
                after.head += count;
            }
            Self::Clear => after.live.clear(),
            Self::Retract(count) if !after.live.is_empty() => {
                let left = after.live.len().saturating_sub(count as usize);
                after.live.truncate(left);
                after.head += 1;
            }
            Self::Retract(_) => {}
        }
        after
    }

    /// Returns the last part of the path, and the body.
    fn request(self, content: &Content) -> (&'static str, Value) {
        let head = content.head;
        match self {
            Self::Append(count) => {
                let message = |seq: u64| json!({"role": "user", "content": format!("text {seq}")});
                let messages: Vec<_> = (head + 1..=head + count).map(message).collect();
                ("messages", json!({"expect": head, "messages": messages}))
            }
            Self::Clear => ("clear", Value::Null),
            Self::Retract(count) => {
                let id = format!("retract-{head}");
                ("retract", json!({"expect": head, "last": count, "id": id}))
            }
        }
    }
}

/// The only writer of a conversation.
#[derive(Debug, Default)]
struct Writer {
    conversation: String,
    /// The content by the acknowledged changes.
    known: Content,
    /// The change that was open when the node was killed.
    unconfirmed: Option<Change>,
}

impl Writer {
    /// Sends a change; `None` if the node is gone.
    fn send(&self, connection: &mut HttpConnection, change: Change) -> Option<Value> {
        let (last, body) = change.request(&self.known);
        let path = format!("/v1/conversations/{}/{last}", self.conversation);
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let (status, answer) = connection.ask("POST", &path, &body)?;
        assert!(matches!(status, 200 | 201), "{path} {change:?}: {answer}");
        Some(answer)
    }

    /// Changes the conversation until the node is gone.
    fn change_until_killed(&mut self, url: &str, acks: &Sender<()>) {
        let mut connection = HttpConnection::open(url);
        loop {
            let change = match self.known.head {
                0 => Change::Append(1),
                _ => Change::random(),
            };
            self.unconfirmed = Some(change);
            let Some(answer) = self.send(&mut connection, change) else {
                return;
            };
            self.known = change.apply(&self.known);
            assert_eq!(answer["head_seq"], self.known.head, "{change:?}");
            self.unconfirmed = None;
            // The counting side may have killed the node already.
            let _ = acks.send(());
        }
    }

    /// Compares the stored content with the acknowledged one, with and without the open change.
    fn check(&mut self, node: &Node, kills: usize) {
        if self.known.head == 0 && self.unconfirmed.is_none() {
            return;
        }
        let mut connection = HttpConnection::open(node.url("http"));
        let path = format!(
            "/v1/conversations/{}/messages?after=0&limit=1000",
            self.conversation
        );
        let (status, page) = connection.ask("GET", &path, "").unwrap();
        let stored = match status {
            404 => Content::default(),
            _ => Content {
                live: seqs(&page),
                head: page["head_seq"].as_u64().unwrap(),
            },
        };
        let after = self.unconfirmed.map(|change| change.apply(&self.known));
        assert!(
            stored == self.known || Some(&stored) == after.as_ref(),
            "after {kills} kills: {stored:?}, acknowledged {:?}, open {:?}",
            self.known,
            self.unconfirmed
        );
        // A repeated retraction is answered alike, whether it was stored or not.
        if let (Some(change @ Change::Retract(_)), Some(after)) = (self.unconfirmed.take(), after) {
            let answer = self.send(&mut connection, change).unwrap();
            assert_eq!(answer["head_seq"], after.head);
            self.known = after;
        } else {
            self.known = stored;
        }
    }
}

fn seqs(page: &Value) -> Vec<u64> {
    let messages = page["messages"].as_array().unwrap().iter();
    messages.map(|it| it["seq"].as_u64().unwrap()).collect()
}

#[test]
fn clear_and_retract_survive_kill9_whole_or_not_at_all() {
    let place = Place::new();
    let writer = |index| Writer {
        conversation: format!("c-{index}"),
        ..Writer::default()
    };
    let mut writers: Vec<_> = (0..WRITERS).map(writer).collect();
    for kills in 0..KILLS {
        let node = place.serve("--data data");
        for writer in &mut writers {
            writer.check(&node, kills);
        }
        change_until_killed(node, &mut writers);
    }
    let node = place.serve("--data data");
    for writer in &mut writers {
        writer.check(&node, KILLS);
        assert!(writer.known.head > KILLS as u64, "little was written");
    }
    node.stop().expect(0);
    let inspected = place.run("inspect data --json").expect(0).json();
    assert_eq!(inspected["whole"], true, "{inspected:#}");
}

/// Runs all writers, and kills the node at a random time.
fn change_until_killed(node: Node, writers: &mut [Writer]) {
    let url = node.url("http").to_owned();
    thread::scope(|scope| {
        let (acks, acked) = mpsc::channel();
        for writer in writers {
            let (acks, url) = (acks.clone(), &url);
            scope.spawn(move || writer.change_until_killed(url, &acks));
        }
        drop(acks);
        for _ in 0..fastrand::usize(1..ACKS_MAX) {
            acked.recv().expect("a writer ended before the kill");
        }
        thread::sleep(Duration::from_micros(fastrand::u64(..3_000)));
        node.signal(Signal::KILL);
        node.end();
    });
}
