//! Messages that only the archive has, over the native protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use conversation_service::archive::{
    Archive, ArchiveQuery, ArchiveRead, ArchiveUnavailable, ArchiveView, ArchivedMessage,
};
use conversation_service::feed::{ArchivedRetention, BatchLimit, EventContent, Partitions};
use model::ErrorCode;
use parking_lot::Mutex;
use tokio::sync::watch;
use wire::{AppendedMessages, Cast, Extract, Kind};

use crate::agent::{Agent, Frame};
use crate::conversations::{append, ask, new};
use crate::durable_node::{DurableNode, Settings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchiveMode {
    /// It answers when it is in another mood.
    Silent,
    Answers,
    ArchiveUnavailable,
}

/// An archive in memory.
struct Memory {
    messages: Mutex<Arc<BTreeMap<u64, ArchivedMessage>>>,
    mood: watch::Sender<ArchiveMode>,
}

impl Archive for Memory {
    fn read(&self, wanted: ArchiveQuery) -> ArchiveRead {
        let (messages, mut mood) = (self.messages.lock().clone(), self.mood.subscribe());
        Box::pin(async move {
            let mood = mood.wait_for(|mood| *mood != ArchiveMode::Silent).await;
            match mood.map(|it| *it) {
                Ok(ArchiveMode::Answers) => Ok(messages
                    .range(wanted.seqs)
                    .map(|(_, it)| it.clone())
                    .collect()),
                _ => Err(ArchiveUnavailable {
                    reason: "it is down".to_owned(),
                }),
            }
        })
    }

    fn view(&self) -> ArchiveView {
        ArchiveView::default()
    }
}

const SAID: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// A node that has the last two of six messages of `a/b/talk`, and an archive that has all.
async fn trimmed() -> (DurableNode, Arc<Memory>) {
    let memory = Arc::new(Memory {
        messages: Mutex::default(),
        mood: watch::Sender::new(ArchiveMode::Answers),
    });
    let mut durable_node = DurableNode::with_settings(Settings {
        archive: Some(memory.clone()),
        ..Settings::default()
    });
    let mut writer = bound(&durable_node).await;
    append(&mut writer, 0, None, &SAID.map(|id| new(id, "[]"))).await;
    durable_node.answer(&mut writer).await;
    let conversations = durable_node.bench.node.conversations().unwrap();
    let mut partitions = Partitions::default();
    conversations.find_partitions(&mut partitions);
    let limit = BatchLimit {
        rows: 100,
        bytes: 1 << 20,
    };
    let batch = conversations.feed(&partitions.found[0], 0, limit).unwrap();
    let messages = batch.rows.iter().map(|row| match &row.happened {
        EventContent::Message { seq, record } => ArchivedMessage {
            seq: *seq,
            at_ms: row.at_ms,
            record: record.clone(),
        },
        other => panic!("{other:?}"),
    });
    *memory.messages.lock() = Arc::new(messages.map(|it| (it.seq, it)).collect());
    let keep = ArchivedRetention {
        messages: Some(2),
        ..ArchivedRetention::default()
    };
    let numbers = 1..conversations.numbers_end();
    let archived = |_: u64| batch.next;
    let trimmed = numbers.map(|it| conversations.trim_archived(it, &keep, archived).unwrap());
    assert_eq!(trimmed.sum::<u64>(), 4);
    durable_node.sync();
    (durable_node, memory)
}

async fn bound(durable_node: &DurableNode) -> Agent {
    let mut agent = durable_node.bench.agent("").await;
    agent.bind(1, "a/b/talk", Cast::Conversation).await;
    agent
}

/// The oldest message that can be read, and those that were.
fn extract(frame: &Frame) -> (u64, Vec<u64>) {
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let extract = Extract::decode(&frame.payload).unwrap();
    let read = extract.records().map(|record| record.offset);
    (extract.start, read.collect())
}

#[tokio::test]
async fn trimmed_messages_are_read_and_followed_over_the_native_protocol() {
    let (mut durable_node, _) = trimmed().await;
    let mut agent = bound(&durable_node).await;
    // A page is either of the archive or of the log; reading on returns all messages.
    for (from, limit, expected) in [
        (0, 10, vec![1, 2, 3, 4]),
        (2, 2, vec![2, 3]),
        (5, 10, vec![5, 6]),
        (7, 10, vec![]),
    ] {
        ask(&mut agent, Kind::READ, 0, from, limit).await;
        assert_eq!(extract(&agent.next().await), (1, expected));
    }
    ask(&mut agent, Kind::FOLLOW, 1, 2, 10).await;
    assert_eq!(extract(&agent.next().await), (1, vec![2, 3, 4]));
    assert_eq!(extract(&agent.next().await), (1, vec![5, 6]));
    append(&mut agent, 2, None, &[new("seven", "[]")]).await;
    agent.expect_nothing().await;
    durable_node.sync();
    assert_eq!(
        AppendedMessages::decode(&agent.next().await.payload)
            .unwrap()
            .first,
        7
    );
    assert_eq!(extract(&agent.next().await), (1, vec![7]));
}

#[tokio::test]
async fn archive_reads_block_no_other_request_and_fail_if_it_is_unavailable() {
    let (mut durable_node, archive) = trimmed().await;
    archive.mood.send_replace(ArchiveMode::Silent);
    let mut agent = bound(&durable_node).await;
    ask(&mut agent, Kind::READ, 0, 1, 10).await;
    ask(&mut agent, Kind::FOLLOW, 1, 3, 10).await;
    // Neither an append of the same client nor another page is behind them.
    append(&mut agent, 2, None, &[new("seven", "[]")]).await;
    agent.expect_nothing().await;
    durable_node.sync();
    assert_eq!(
        AppendedMessages::decode(&agent.next().await.payload)
            .unwrap()
            .first,
        7
    );
    ask(&mut agent, Kind::READ, 2, 5, 10).await;
    assert_eq!(extract(&agent.next().await), (1, vec![5, 6, 7]));
    agent.expect_nothing().await;
    archive.mood.send_replace(ArchiveMode::ArchiveUnavailable);
    for _ in 0..2 {
        let frame = agent.next().await;
        let failure = frame.failure();
        assert_eq!(failure.code, ErrorCode::Unavailable);
        assert!(
            failure.message.contains("it is down"),
            "{}",
            failure.message
        );
    }
    archive.mood.send_replace(ArchiveMode::Answers);
    ask(&mut agent, Kind::READ, 0, 1, 10).await;
    assert_eq!(extract(&agent.next().await), (1, vec![1, 2, 3, 4]));
}
