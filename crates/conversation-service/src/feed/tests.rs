//! The feed and reads from the archive, on an in-memory disk.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::journal::disk::SimulatedDisk;
use bytes::Bytes;
use model::{ErrorCode, Name};
use parking_lot::Mutex;
use platform::testing::journal_on;

use super::*;
use crate::archive::{
    Archive, ArchiveQuery, ArchiveRead, ArchiveUnavailable, ArchiveView, ArchivedMessage,
};
use crate::testing::World;
use crate::{
    Batch as Messages, Change, NewMessage, Options, Page, RetractExtent, RetractRequest, Side,
};

const LIMIT: BatchLimit = BatchLimit {
    rows: 100,
    bytes: 1 << 20,
};

/// An in-memory archive, which can be unavailable.
#[derive(Default)]
struct Memory {
    messages: Mutex<BTreeMap<(u64, u64), (u64, Bytes)>>,
    is_away: Mutex<bool>,
}

impl Archive for Memory {
    fn read(&self, wanted: ArchiveQuery) -> ArchiveRead {
        if *self.is_away.lock() {
            let reason = "it is down".to_owned();
            return Box::pin(ready(Err(ArchiveUnavailable { reason })));
        }
        let messages = self.messages.lock();
        let mut left = wanted.bytes;
        let mut found = Vec::new();
        for seq in wanted.seqs {
            let Some((at_ms, record)) = messages.get(&(wanted.conversation, seq)) else {
                continue;
            };
            if !found.is_empty() && record.len() > left {
                break;
            }
            left = left.saturating_sub(record.len());
            found.push(ArchivedMessage {
                seq,
                at_ms: *at_ms,
                record: record.clone(),
            });
        }
        Box::pin(ready(Ok(found)))
    }

    fn view(&self) -> ArchiveView {
        ArchiveView::default()
    }
}

/// Conversations, their disk and an archive.
struct FeedFixture {
    world: World,
    line: ::journal::Line,
    archive: Arc<Memory>,
    partitions: Partitions,
    marks: BTreeMap<u64, u64>,
}

impl FeedFixture {
    fn new() -> Self {
        let disk = SimulatedDisk::new(5);
        let (journal, line, _) = journal_on(&disk, 1).unwrap();
        let archive = Arc::new(Memory::default());
        let options = Options::default();
        let world = World::open(journal, options, None, Some(archive.clone()));
        Self {
            world,
            line,
            archive,
            partitions: Partitions::default(),
            marks: BTreeMap::new(),
        }
    }

    fn conversations(&self) -> &Conversations {
        &self.world.conversations
    }

    /// Appends messages whose text is their number, without a sync.
    fn append(&self, name: &str, count: usize) {
        for _ in 0..count {
            let message = NewMessage {
                id: None,
                role: "user",
                from: "alice",
                tokens: Some(1),
                facts: &[],
                parts: br#"[{"type":"text","text":"Hi"}]"#,
                metadata: b"",
            };
            let batch = Messages {
                expect: None,
                messages: &[message],
            };
            let pending = self.conversations().append(&named(name), batch).unwrap();
            drop(pending);
        }
    }

    fn appended(&mut self, name: &str, count: usize) {
        self.append(name, count);
        self.line.step();
    }

    /// Feeds everything to the archive in batches of this size; returns the rows as text.
    fn feed(&mut self, limit: BatchLimit) -> Vec<String> {
        let mut told = Vec::new();
        let mut partitions = std::mem::take(&mut self.partitions);
        self.conversations().find_partitions(&mut partitions);
        for partition in &partitions.found {
            loop {
                let from = self.marks.get(&partition.number).copied().unwrap_or(0);
                let batch = self.conversations().feed(partition, from, limit).unwrap();
                if batch.next == from {
                    break;
                }
                assert!(batch.rows.len() <= limit.rows);
                for row in &batch.rows {
                    let name = &batch.names[&row.conversation];
                    told.push(self.take(name, row));
                }
                self.marks.insert(partition.number, batch.next);
            }
        }
        self.partitions = partitions;
        told
    }

    fn take(&self, name: &str, row: &Row) -> String {
        let mut messages = self.archive.messages.lock();
        match &row.happened {
            EventContent::Message { seq, record } => {
                let message = (row.at_ms, record.clone());
                let before = messages.insert((row.conversation, *seq), message);
                assert_eq!(before, None, "twice");
                format!("{name} {seq}")
            }
            EventContent::Retracted {
                first_seq,
                last_seq,
            } => {
                let range = (row.conversation, *first_seq)..=(row.conversation, *last_seq);
                messages.retain(|key, _| !range.contains(key));
                format!("{name} retracted {first_seq} to {last_seq}")
            }
            EventContent::State(state) => format!("{name} version {}", state.version),
            EventContent::Erased => {
                messages.retain(|(number, _), _| *number != row.conversation);
                format!("{name} erased")
            }
        }
    }

    /// Trims every conversation.
    fn trim(&mut self, keep: &ArchivedRetention) -> u64 {
        let archived = |partition: u64| self.marks.get(&partition).copied().unwrap_or(0);
        let numbers = 1..self.conversations().numbers_end();
        let trimmed = numbers.map(|number| {
            let conversations = self.conversations();
            conversations.trim_archived(number, keep, archived).unwrap()
        });
        let trimmed = trimmed.sum();
        self.line.step();
        trimmed
    }

    fn read(&self, name: &str, side: Side, limit: usize) -> Result<Vec<u64>, ErrorCode> {
        let page = Page {
            side,
            limit,
            bytes: 1 << 20,
        };
        let read = self.conversations().read(&named(name), page);
        let read = read.map_err(|refusal| refusal.code())?;
        Ok(read.messages().map(|it| it.unwrap().seq).collect())
    }
}

fn named(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn keep(messages: u64) -> ArchivedRetention {
    ArchivedRetention {
        messages: Some(messages),
        ..ArchivedRetention::default()
    }
}

#[test]
fn durable_messages_are_fed_once_in_order_for_any_batch_size() {
    for rows in [1, 2, 100] {
        let mut fed = FeedFixture::new();
        fed.append("a/n/x", 3);
        assert_eq!(fed.feed(LIMIT), Vec::<String>::new(), "nothing is durable");
        fed.line.step();
        fed.appended("a/n/x", 2);
        let limit = BatchLimit { rows, ..LIMIT };
        let all: Vec<_> = (1..=5).map(|seq| format!("a/n/x {seq}")).collect();
        assert_eq!(fed.feed(limit), all);
        assert_eq!(fed.feed(limit), Vec::<String>::new());
        fed.appended("a/n/x", 1);
        assert_eq!(fed.feed(limit), ["a/n/x 6"]);
        let lag = |next| {
            let partition = &fed.partitions.found[0];
            fed.conversations().lag([(partition, next)].into_iter())
        };
        assert_eq!((lag(6).events, lag(4).events), (0, 2));
    }
}

#[test]
fn feed_batch_ends_at_the_byte_limit() {
    let mut fed = FeedFixture::new();
    fed.appended("a/n/x", 4);
    fed.conversations()
        .find_partitions(&mut fed.partitions.clone());
    let mut partitions = Partitions::default();
    fed.conversations().find_partitions(&mut partitions);
    let limit = BatchLimit { bytes: 1, ..LIMIT };
    let batch = fed.conversations().feed(&partitions.found[0], 0, limit);
    assert_eq!(batch.unwrap().next, 1, "one comes even if it is larger");
}

#[test]
fn feed_has_only_the_newest_state_and_skips_erased_messages() {
    let mut fed = FeedFixture::new();
    let put = |metadata: &str| Change::Put {
        metadata: Some(metadata.as_bytes().to_vec()),
        settings: None,
        is_archived: None,
    };
    for metadata in ["{}", "{\"a\":1}"] {
        let conversations = fed.conversations();
        drop(
            conversations
                .change(&named("a/n/x"), None, &put(metadata))
                .unwrap(),
        );
    }
    fed.appended("a/n/x", 1);
    assert_eq!(fed.feed(LIMIT), ["a/n/x version 2", "a/n/x 1"]);
    fed.appended("a/n/x", 2);
    drop(fed.conversations().delete(&named("a/n/x")).unwrap());
    fed.line.step();
    assert_eq!(fed.feed(LIMIT), ["a/n/x erased"]);
    assert!(fed.archive.messages.lock().is_empty());
}

#[test]
fn only_archived_messages_are_trimmed_and_pages_have_no_gap() {
    let mut fed = FeedFixture::new();
    fed.appended("a/n/x", 6);
    assert_eq!(fed.trim(&keep(2)), 0, "nothing is archived");
    fed.feed(LIMIT);
    fed.appended("a/n/x", 6);
    assert_eq!(fed.trim(&keep(2)), 6, "what is not archived stays");
    fed.feed(LIMIT);
    assert_eq!(fed.trim(&keep(2)), 4);
    assert_eq!(fed.trim(&keep(2)), 0);
    let all: Vec<u64> = (1..=12).collect();
    assert_eq!(fed.read("a/n/x", Side::After(0), 100), Ok(all.clone()));
    assert_eq!(fed.read("a/n/x", Side::Last, 100), Ok(all));
    assert_eq!(fed.read("a/n/x", Side::After(8), 3), Ok(vec![9, 10, 11]));
    assert_eq!(fed.read("a/n/x", Side::Before(12), 3), Ok(vec![9, 10, 11]));
    *fed.archive.is_away.lock() = true;
    let away = Err(ErrorCode::Unavailable);
    assert_eq!(fed.read("a/n/x", Side::After(8), 3), away);
    assert_eq!(fed.read("a/n/x", Side::Before(12), 3), away);
    assert_eq!(fed.read("a/n/x", Side::After(10), 3), Ok(vec![11, 12]));
    *fed.archive.is_away.lock() = false;
    fed.archive.messages.lock().clear();
    let trimmed = Err(ErrorCode::Trimmed);
    assert_eq!(fed.read("a/n/x", Side::After(8), 3), trimmed, "no gap");
    fed.appended("a/n/x", 1);
    assert_eq!(fed.read("a/n/x", Side::Last, 1), Ok(vec![13]));
}

#[test]
fn watchers_and_context_windows_read_archived_messages() {
    use std::task::{Context, Poll, Waker};

    let mut fed = FeedFixture::new();
    fed.appended("a/n/x", 10);
    fed.feed(LIMIT);
    assert_eq!(fed.trim(&keep(1)), 9);
    let mut watch = fed.conversations().watch(&named("a/n/x"), 2).unwrap();
    let mut seqs = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(item) = watch.poll_next(&mut context) {
        if let crate::Item::Message(stored) = item.unwrap() {
            seqs.push(stored.seq);
        }
    }
    assert_eq!(seqs, (3..=10).collect::<Vec<_>>());
    let policy = crate::Policy {
        budget: 1_000,
        ..Default::default()
    };
    let window = || fed.conversations().context(&named("a/n/x"), Some(&policy));
    let cut = window().unwrap();
    let mut cut = std::pin::pin!(cut);
    let Poll::Ready(read) = cut.as_mut().poll(&mut context) else {
        panic!("it is durable");
    };
    assert_eq!(read.unwrap().messages().count(), 10);
    *fed.archive.is_away.lock() = true;
    assert_eq!(window().unwrap_err().code(), ErrorCode::Unavailable);
}

#[test]
fn feed_waiter_is_woken_when_a_message_is_durable() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let mut fed = FeedFixture::new();
    fed.appended("a/n/x", 1);
    fed.feed(LIMIT);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let wait = |next: u64| {
        let conversations = fed.conversations();
        conversations.wait_for_events(&fed.partitions, |_| next, &waker)
    };
    assert!(wait(0).is_none(), "there is something already");
    let waiting = wait(1).unwrap();
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    fed.append("a/n/x", 1);
    fed.line.step();
    assert!(count.0.load(Ordering::Relaxed) > 0);
    drop(waiting);
}

#[test]
fn cleared_messages_are_not_read_from_the_archive() {
    let mut fed = FeedFixture::new();
    fed.appended("a/n/x", 6);
    fed.feed(LIMIT);
    drop(fed.conversations().clear(&named("a/n/x"), None).unwrap());
    fed.line.step();
    // The archive still has the messages until it is told.
    assert_eq!(fed.read("a/n/x", Side::After(0), 100), Ok(Vec::new()));
    assert_eq!(fed.read("a/n/x", Side::Last, 100), Ok(Vec::new()));
    fed.appended("a/n/x", 1);
    assert_eq!(fed.read("a/n/x", Side::After(0), 100), Ok(vec![7]));
    assert_eq!(fed.read("a/n/x", Side::Last, 100), Ok(vec![7]));
    let batch = fed.feed(LIMIT);
    assert_eq!(batch, ["a/n/x version 1", "a/n/x 7"]);
}

impl FeedFixture {
    fn retract(&mut self, name: &str, expect: u64, count: u64) {
        let request = RetractRequest {
            id: None,
            expect,
            extent: RetractExtent::Newest(count),
        };
        drop(self.conversations().retract(&named(name), request).unwrap());
        self.line.step();
    }
}

#[test]
fn feed_reports_a_retraction_and_leaves_retracted_messages_out() {
    let mut fed = FeedFixture::new();
    fed.appended("a/n/x", 3);
    assert_eq!(fed.feed(LIMIT), ["a/n/x 1", "a/n/x 2", "a/n/x 3"]);
    fed.appended("a/n/x", 1);
    fed.retract("a/n/x", 4, 2);
    fed.appended("a/n/x", 1);
    // Message 4 was retracted before it was fed.
    let expected = ["a/n/x retracted 3 to 5", "a/n/x version 1", "a/n/x 6"];
    assert_eq!(fed.feed(LIMIT), expected);
    let mut late = FeedFixture::new();
    late.appended("a/n/x", 3);
    late.retract("a/n/x", 3, 1);
    let one = BatchLimit { rows: 1, ..LIMIT };
    let expected = [
        "a/n/x 1",
        "a/n/x 2",
        "a/n/x retracted 3 to 4",
        "a/n/x version 1",
    ];
    assert_eq!(late.feed(one), expected);
}

#[test]
fn archived_messages_are_read_around_retracted_ones() {
    let mut fed = FeedFixture::new();
    fed.appended("a/n/x", 6);
    fed.retract("a/n/x", 6, 2);
    fed.appended("a/n/x", 2);
    fed.retract("a/n/x", 9, 1);
    fed.appended("a/n/x", 4);
    fed.feed(LIMIT);
    assert!(fed.trim(&keep(2)) > 0);
    let all = vec![1, 2, 3, 4, 8, 11, 12, 13, 14];
    assert_eq!(fed.read("a/n/x", Side::After(0), 100), Ok(all.clone()));
    assert_eq!(fed.read("a/n/x", Side::Last, 100), Ok(all.clone()));
    assert_eq!(fed.read("a/n/x", Side::Before(9), 3), Ok(vec![3, 4, 8]));
    assert_eq!(fed.read("a/n/x", Side::After(5), 2), Ok(vec![8, 11]));
    let mut watch = fed.conversations().watch(&named("a/n/x"), 0).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut seen = Vec::new();
    while let Poll::Ready(Ok(item)) = watch.poll_next(&mut context) {
        match item {
            crate::Item::Message(stored) => seen.push(stored.seq),
            crate::Item::Retracted { last_seq, .. } => seen.push(100 + last_seq),
            _ => {}
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 107, 8, 110, 11, 12, 13, 14]);
    let policy = crate::Policy {
        budget: 1_000,
        ..crate::Policy::default()
    };
    let context = fed.conversations().context(&named("a/n/x"), Some(&policy));
    let Poll::Ready(Ok(window)) = context.unwrap().poll_answer(Waker::noop()) else {
        panic!("it is durable");
    };
    let shown: Vec<_> = window.cut.messages.iter().map(|it| it.seq).collect();
    assert_eq!(shown, all);
    // A retraction of messages that only the archive has.
    fed.retract("a/n/x", 14, 8);
    fed.feed(LIMIT);
    assert_eq!(fed.read("a/n/x", Side::After(0), 100), Ok(vec![1]));
    assert_eq!(fed.archive.messages.lock().len(), 1);
}
