//! A node that is killed repeatedly while several writers append to the same conversations: every
//! acknowledged message is stored once, with its sequence number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, NewMessage};
use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::sync::mpsc;

use crate::support::{Node, Place};

const KILLS: usize = 20;
const CONVERSATIONS: usize = 3;

/// Writers per conversation.
const WRITERS: usize = 3;

/// Maximum number of acknowledged batches between a start and a kill.
const ACKS_MAX: usize = 200;

/// Maximum number of messages in an append.
const BATCH_MAX: u64 = 3;

/// The state of a writer.
#[derive(Debug, Default)]
struct Writer {
    name: String,
    id: usize,
    /// The next message; no message is appended under two ids.
    next: u64,
    /// The acknowledged sequence numbers of its messages.
    acknowledged: BTreeMap<String, u64>,
    /// The append that was open when the node was killed.
    unconfirmed: Vec<NewMessage>,
}

type Shared = Arc<Mutex<Writer>>;

impl Writer {
    /// Returns the messages of the next append, which is now open.
    fn begin(&mut self) -> Vec<NewMessage> {
        let count = fastrand::u64(1..=BATCH_MAX);
        let messages = (self.next..self.next + count).map(|number| {
            let padding = "x".repeat((number * 37 % 1500) as usize);
            let parts = format!(r#"[{{"type":"text","text":"{number} {padding}"}}]"#);
            NewMessage {
                id: format!("{}.{number}", self.id),
                ..NewMessage::new("user", parts)
            }
        });
        self.unconfirmed = messages.collect();
        self.next += count;
        self.unconfirmed.clone()
    }

    /// Notes that the open append was acknowledged, with its first sequence number.
    fn acknowledged(&mut self, first: u64) {
        for (message, seq) in std::mem::take(&mut self.unconfirmed)
            .into_iter()
            .zip(first..)
        {
            self.acknowledged.insert(message.id, seq);
        }
    }
}

#[test]
fn acked_conversation_messages_survive_repeated_kill9() {
    let place = Place::new();
    let writers: Vec<_> = (0..CONVERSATIONS * WRITERS)
        .map(|id| {
            Arc::new(Mutex::new(Writer {
                name: format!("acme/kill/talk-{}", id % CONVERSATIONS),
                id,
                ..Writer::default()
            }))
        })
        .collect();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    for kills in 0..KILLS {
        let node = place.serve("--data data");
        runtime.block_on(async {
            check(&node, &writers, kills).await;
            append_until_killed(node, &writers).await;
        });
    }
    let node = place.serve("--data data");
    runtime.block_on(check(&node, &writers, KILLS));
    node.stop().expect(0);
    let said = writers
        .iter()
        .map(|writer| writer.lock().acknowledged.len());
    assert!(said.sum::<usize>() > KILLS, "little was said");
    let inspected = place.run("inspect data --json").expect(0).json();
    assert_eq!(inspected["whole"], true, "{inspected:#}");
}

/// Repeats appends with unknown outcome, and reads everything back.
async fn check(node: &Node, writers: &[Shared], kills: usize) {
    let client = Client::connect(node.url("native")).await.unwrap();
    for writer in writers {
        let (name, again) = {
            let writer = writer.lock();
            (writer.name.clone(), writer.unconfirmed.clone())
        };
        if !again.is_empty() {
            let conversation = client.conversation(&name).unwrap();
            let appended = conversation.append(&again).await.unwrap();
            // The batch is stored as a whole or not at all.
            let deduplicated = appended.deduplicated as usize;
            assert!(deduplicated == 0 || deduplicated == again.len());
            writer.lock().acknowledged(appended.first);
        }
    }
    for index in 0..CONVERSATIONS {
        let name = format!("acme/kill/talk-{index}");
        let there = stored(&client, &name).await;
        let mut said = 0;
        for writer in writers.iter().filter(|it| it.lock().name == name) {
            let writer = writer.lock();
            said += writer.acknowledged.len();
            for (id, seq) in &writer.acknowledged {
                let found = there.get(*seq as usize - 1);
                assert_eq!(
                    found,
                    Some(id),
                    "number {seq} of {name} after {kills} kills"
                );
            }
        }
        // No duplicates, and no messages that were never sent.
        assert_eq!(there.len(), said, "{name} after {kills} kills");
    }
}

/// Returns the ids of all messages in order; none if the conversation does not exist.
async fn stored(client: &Client, name: &str) -> Vec<String> {
    let conversation = client.conversation(name).unwrap();
    let mut ids = Vec::new();
    loop {
        let page = match conversation.read(ids.len() as u64).await {
            Ok(page) => page,
            Err(error) if error.code == client::ErrorCode::NotFound => return ids,
            Err(error) => panic!("{error}"),
        };
        for message in &page.messages {
            assert_eq!(message.seq, ids.len() as u64 + 1, "numbers are dense");
            ids.push(message.id.clone());
        }
        if ids.len() as u64 == page.head {
            return ids;
        }
    }
}

/// Runs all writers, and kills the node at a random time.
async fn append_until_killed(node: Node, writers: &[Shared]) {
    let (acks, mut acked) = mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for writer in writers {
        let client = Client::connect(node.url("native")).await.unwrap();
        tasks.push(tokio::spawn(append_batches(
            client,
            writer.clone(),
            acks.clone(),
        )));
    }
    drop(acks);
    for _ in 0..fastrand::usize(1..ACKS_MAX) {
        acked.recv().await.expect("a writer ended before the kill");
    }
    tokio::time::sleep(Duration::from_micros(fastrand::u64(..3_000))).await;
    // No writer starts another append, because the writers run on this thread.
    acked.close();
    node.signal(Signal::KILL);
    node.end();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Appends batches until the receiver of counts is gone.
async fn append_batches(client: Client, writer: Shared, acks: mpsc::UnboundedSender<()>) {
    let conversation = client.conversation(&writer.lock().name).unwrap();
    while !acks.is_closed() {
        let messages = writer.lock().begin();
        match conversation.append(&messages).await {
            Ok(appended) => {
                writer.lock().acknowledged(appended.first);
                // The counting side may have killed the node already.
                let _ = acks.send(());
            }
            Err(error) => {
                assert!(acks.is_closed(), "not killed, and yet: {error}");
                return;
            }
        }
    }
}
