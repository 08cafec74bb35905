//! A node that is killed while several speak in the same conversations, over and over in one
//! directory: every message that was acknowledged is there, under its number, once.

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

/// Those who speak in each.
const WRITERS: usize = 3;

/// Batches that are acknowledged, all in all, between a start and a kill, at most.
const ACKS_MAX: usize = 200;

/// Messages that are appended at once, at most.
const BATCH_MAX: u64 = 3;

/// What one writer knows.
#[derive(Debug, Default)]
struct Writer {
    name: String,
    id: usize,
    /// The next message; none is said twice under another id.
    next: u64,
    /// Under which numbers its messages must be.
    acknowledged: BTreeMap<String, u64>,
    /// What was under way when the node was killed.
    unconfirmed: Vec<NewMessage>,
}

type Shared = Arc<Mutex<Writer>>;

impl Writer {
    /// Takes the next messages for something that is now under way.
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

    /// What was under way is there, from this number on.
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
fn every_message_that_was_acknowledged_outlives_any_number_of_kills() {
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
            speak_until_killed(node, &writers).await;
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

/// Says again what nobody knows of, and reads everything back.
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
            // All of it was there, or nothing.
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
        // Nothing else: nothing twice, and nothing that was not said.
        assert_eq!(there.len(), said, "{name} after {kills} kills");
    }
}

/// The ids of all messages, in order; those of a conversation that is not there are none.
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

/// Lets everybody speak, and kills the node at a moment that chance chooses.
async fn speak_until_killed(node: Node, writers: &[Shared]) {
    let (acks, mut acked) = mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for writer in writers {
        let client = Client::connect(node.url("native")).await.unwrap();
        tasks.push(tokio::spawn(speak(client, writer.clone(), acks.clone())));
    }
    drop(acks);
    for _ in 0..fastrand::usize(1..ACKS_MAX) {
        acked.recv().await.expect("a writer ended before the kill");
    }
    tokio::time::sleep(Duration::from_micros(fastrand::u64(..3_000))).await;
    // Nobody begins anything more: this thread is the writers' too.
    acked.close();
    node.signal(Signal::KILL);
    node.end();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Says one thing after the other until nobody wants to know any more.
async fn speak(client: Client, writer: Shared, acks: mpsc::UnboundedSender<()>) {
    let conversation = client.conversation(&writer.lock().name).unwrap();
    while !acks.is_closed() {
        let messages = writer.lock().begin();
        match conversation.append(&messages).await {
            Ok(appended) => {
                writer.lock().acknowledged(appended.first);
                // Whoever counts may have killed the node already.
                let _ = acks.send(());
            }
            Err(error) => {
                assert!(acks.is_closed(), "not killed, and yet: {error}");
                return;
            }
        }
    }
}
