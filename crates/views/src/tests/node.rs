//! Views of conversations, with a journal in memory and a file for the views.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use conversation_service::{
    Batch, Change, ConversationError, Conversations, NewMessage, Pending, Settings,
};
use journal::disk::SimulatedDisk;
use journal::{Journal, Line, StreamId};
use model::{ErrorCode, Name};
use platform::Clock;
use platform::testing::journal_on;
use store::{Kind, Store};

use crate::source::{MessageFacts, Source, WantedMessages};
use crate::{Archived, Changed, Due, InboxQuery, ListQuery, Listed, Options, Views, ViewsLocation};

const PEOPLE: [&str; 3] = ["alice", "bob", "carol"];

#[derive(Default)]
struct ManualClock(AtomicU64, AtomicU64);

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_ms(&self) -> u64 {
        // The second is a step of the wall clock, in milliseconds.
        1_000 + self.1.load(Ordering::Relaxed) + self.now_ns() / 1_000_000
    }
}

/// Conversations, their views, their disk and their clock.
struct Node {
    journal: Arc<Journal>,
    conversations: Conversations,
    views: Views,
    line: Line,
    disk: SimulatedDisk,
    clock: Arc<ManualClock>,
    place: ViewsLocation,
    starts: u64,
}

/// Metadata of these tests: `key=value,key=value`.
fn labels(metadata: &[u8], tell: &mut dyn FnMut(&str, &str)) {
    let text = std::str::from_utf8(metadata).unwrap_or_default();
    for (key, value) in text.split(',').filter_map(|it| it.split_once('=')) {
        tell(key, value);
    }
}

fn named(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn open(
    journal: Arc<Journal>,
    clock: &Arc<ManualClock>,
    place: &ViewsLocation,
) -> (Conversations, Views) {
    let options = Options {
        place: place.clone(),
        cache_size: 1 << 20,
        sync_interval: Duration::from_millis(100),
        watchers_max: 10,
        labels,
    };
    let platform = platform::testing::platform(clock.clone());
    let store = Arc::new(Store::open(journal, 1_000_000, 0).unwrap());
    let conversations = Conversations::open(
        platform.clone(),
        store.clone(),
        conversation_service::Options::default(),
        None,
        None,
    )
    .unwrap();
    let views = Views::new(platform, store, conversations.clone(), options);
    (conversations, views)
}

impl Node {
    fn start(place: ViewsLocation) -> Self {
        Self::on(SimulatedDisk::new(3), place, Arc::default(), 1)
    }

    fn on(disk: SimulatedDisk, place: ViewsLocation, clock: Arc<ManualClock>, starts: u64) -> Self {
        let (journal, line, _) = journal_on(&disk, starts).unwrap();
        let (conversations, views) = open(journal.clone(), &clock, &place);
        Self {
            journal,
            conversations,
            views,
            line,
            disk,
            clock,
            place,
            starts,
        }
    }

    /// The process crashes, and unsynced data is lost.
    fn crash(self) -> Self {
        let Self {
            journal,
            conversations,
            views,
            line,
            disk,
            clock,
            place,
            starts,
        } = self;
        drop((journal, conversations, views, line));
        disk.crash(&mut fastrand::Rng::with_seed(starts));
        Self::on(disk, place, clock, starts + 1)
    }

    fn views(&self) -> &Views {
        &self.views
    }

    fn pass_ms(&self, ms: u64) {
        self.clock.0.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }

    /// Returns a result once it is durable.
    fn done<T>(
        &mut self,
        pending: Result<Pending<T>, ConversationError>,
    ) -> Result<T, ConversationError> {
        let mut pending = pending?;
        self.line.step();
        match pending.poll_answer(Waker::noop()) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("it is not told"),
        }
    }

    fn append_from(&mut self, name: &str, from: &str) -> Result<u64, ConversationError> {
        self.pass_ms(1);
        let message = NewMessage {
            id: None,
            role: "user",
            from,
            tokens: None,
            facts: &[],
            parts: b"[]",
            metadata: b"",
        };
        let batch = Batch {
            expect: None,
            messages: &[message],
        };
        let appended = self.conversations.append(&named(name), batch);
        self.done(appended).map(|it| it.head_seq)
    }

    fn change(&mut self, name: &str, change: &Change) -> Result<(), ConversationError> {
        self.pass_ms(1);
        let changed = self.conversations.change(&named(name), None, change);
        self.done(changed).map(drop)
    }

    fn put(
        &mut self,
        name: &str,
        metadata: &str,
        settings: Settings,
    ) -> Result<(), ConversationError> {
        self.change(
            name,
            &Change::Put {
                metadata: Some(metadata.as_bytes().to_vec()),
                settings: Some(settings),
                is_archived: None,
            },
        )
    }

    fn list(&self, labels: &[(String, String)]) -> Vec<Listed> {
        let query = ListQuery {
            labels,
            archived: Archived::Any,
            after: None,
            limit: 100,
        };
        self.views().list("a/b", query).unwrap().conversations
    }

    fn names(&self) -> Vec<String> {
        self.list(&[]).into_iter().map(|it| it.name).collect()
    }

    /// Returns name, head, read mark and unread count of each line.
    fn inbox(&self, who: &str) -> Vec<(String, u64, u64, u64)> {
        let query = InboxQuery {
            who,
            archived: Archived::No,
            unread_only: false,
            after: None,
            limit: 100,
        };
        let inbox = self.views().inbox("a/b", query).unwrap();
        let lines = inbox.lines.into_iter();
        let told = lines.map(|it| (it.name, it.head_seq, it.read_seq, it.unread));
        told.collect()
    }

    fn dump(&self) -> Vec<String> {
        self.list(&[]);
        self.views().opened().unwrap().0.dump()
    }

    /// Returns the content of views that are built now from the same journal.
    fn dump_rebuilt(&self) -> Vec<String> {
        let journal = self.journal.clone();
        let (_, views) = open(journal, &self.clock, &ViewsLocation::Memory);
        while views.tend().unwrap() {}
        views.opened().unwrap().0.dump()
    }
}

fn code<T: std::fmt::Debug>(outcome: Result<T, ConversationError>) -> ErrorCode {
    outcome.unwrap_err().code()
}

/// Random histories of a node whose views crash, are deleted, and fall behind.
#[test]
fn node_views_after_crashes_equal_rebuilt_views() {
    for seed in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut node = Node::start(ViewsLocation::Directory(dir.path().to_owned()));
        for _ in 0..60 {
            let name = format!("a/b/c{}", dice.u32(..6));
            let who = PEOPLE[dice.usize(..3)];
            let outcome = match dice.u32(..100) {
                0..50 => node.append_from(&name, who).map(drop),
                50..65 => {
                    let change = Change::Cursor {
                        who: who.to_owned(),
                        seq: dice.u64(1..6),
                    };
                    node.change(&name, &change)
                }
                65..75 => {
                    let settings = Settings {
                        agent: who.to_owned(),
                        participants: vec![PEOPLE[dice.usize(..3)].to_owned()],
                        ttl_ms: dice.u64(..2) * 1_000_000,
                        ..Settings::default()
                    };
                    node.put(&name, &format!("k={}", dice.u32(..3)), settings)
                }
                75..78 => node.change(&name, &Change::Erase),
                78..90 => {
                    node.views().tend().unwrap();
                    Ok(())
                }
                90..97 => {
                    node = node.crash();
                    Ok(())
                }
                _ => {
                    node = node.crash();
                    remove(dir.path());
                    Ok(())
                }
            };
            if let Err(refusal) = outcome {
                let is_expected = matches!(
                    refusal.code(),
                    ErrorCode::NotFound | ErrorCode::Gone | ErrorCode::InvalidArgument
                );
                assert!(is_expected, "{refusal:?}");
            }
        }
        assert_eq!(node.dump(), node.dump_rebuilt(), "seed {seed}");
        node = node.crash();
        assert_eq!(node.dump(), node.dump_rebuilt(), "seed {seed} after all");
    }
}

fn remove(directory: &Path) {
    std::fs::remove_file(directory.join("conversations")).unwrap_or_default();
}

#[test]
fn view_query_includes_all_acknowledged_writes() {
    let mut node = Node::start(ViewsLocation::Memory);
    assert_eq!(node.names(), [""; 0]);
    node.append_from("a/b/one", "alice").unwrap();
    node.put("a/b/two", "user=alice,team=x", Settings::default())
        .unwrap();
    assert_eq!(node.names(), ["a/b/two", "a/b/one"]);
    node.append_from("a/b/one", "bob").unwrap();
    assert_eq!(node.names(), ["a/b/one", "a/b/two"]);
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let found = node.list(&[label("user", "alice"), label("team", "x")]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].state.metadata, b"user=alice,team=x");
    assert!(
        node.list(&[label("user", "alice"), label("team", "y")])
            .is_empty()
    );
    node.put("a/b/two", "user=bob", Settings::default())
        .unwrap();
    assert!(node.list(&[label("user", "alice")]).is_empty());
    // Data that is not durable is not shown.
    let conversations = node.conversations.clone();
    let erased = conversations.change(&named("a/b/two"), None, &Change::Erase);
    assert_eq!(node.names(), ["a/b/one", "a/b/two"]);
    node.done(erased).unwrap();
    assert_eq!(node.names(), ["a/b/one"]);
}

#[test]
fn inbox_includes_named_participants_writers_and_readers() {
    let mut node = Node::start(ViewsLocation::Memory);
    let settings = Settings {
        participants: vec!["carol".to_owned()],
        ..Settings::default()
    };
    node.put("a/b/x", "", settings).unwrap();
    assert_eq!(node.inbox("carol"), [("a/b/x".to_owned(), 0, 0, 0)]);
    for from in ["alice", "alice", "bob", "alice"] {
        node.append_from("a/b/x", from).unwrap();
    }
    assert_eq!(node.inbox("alice"), [("a/b/x".to_owned(), 4, 0, 1)]);
    assert_eq!(node.inbox("carol"), [("a/b/x".to_owned(), 4, 0, 4)]);
    assert_eq!(node.inbox("dave"), []);
    let read = |who: &str, seq| Change::Cursor {
        who: who.to_owned(),
        seq,
    };
    node.change("a/b/x", &read("dave", 3)).unwrap();
    node.change("a/b/x", &read("alice", 2)).unwrap();
    assert_eq!(node.inbox("dave"), [("a/b/x".to_owned(), 4, 3, 1)]);
    assert_eq!(node.inbox("alice"), [("a/b/x".to_owned(), 4, 2, 1)]);
    node.change("a/b/x", &read("alice", 3)).unwrap();
    assert_eq!(node.inbox("alice"), [("a/b/x".to_owned(), 4, 3, 0)]);
}

#[test]
fn due_conversations_are_returned_oldest_first() {
    let mut node = Node::start(ViewsLocation::Memory);
    let settings = Settings {
        agent: "support".to_owned(),
        ..Settings::default()
    };
    for name in ["a/b/one", "a/b/two"] {
        node.put(name, "", settings.clone()).unwrap();
    }
    let due = |node: &Node| -> Vec<Due> { node.views().due("a/b", "support", 10).unwrap() };
    assert_eq!(due(&node), []);
    node.append_from("a/b/two", "alice").unwrap();
    node.append_from("a/b/one", "alice").unwrap();
    let names: Vec<_> = due(&node)
        .into_iter()
        .map(|it| (it.name, it.read_seq))
        .collect();
    assert_eq!(
        names,
        [("a/b/two".to_owned(), 0), ("a/b/one".to_owned(), 0)]
    );
    node.append_from("a/b/two", "support").unwrap();
    let answered = Change::Cursor {
        who: "support".to_owned(),
        seq: 1,
    };
    node.change("a/b/two", &answered).unwrap();
    let names: Vec<_> = due(&node).into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["a/b/one"]);
}

#[test]
fn expired_conversation_is_hidden_at_once_and_erased_in_background() {
    let mut node = Node::start(ViewsLocation::Memory);
    let settings = Settings {
        ttl_ms: 10_000,
        ..Settings::default()
    };
    for name in ["a/b/met", "a/b/left", "a/b/written"] {
        node.put(name, "k=v", settings.clone()).unwrap();
        node.append_from(name, "alice").unwrap();
    }
    node.pass_ms(9_000);
    assert_eq!(node.names().len(), 3);
    node.append_from("a/b/written", "alice").unwrap();
    node.pass_ms(1_000);
    assert_eq!(node.names(), ["a/b/written"]);
    assert_eq!(node.inbox("alice").len(), 1);
    let conversations = node.conversations.clone();
    let got = conversations.get(&named("a/b/met"));
    assert_eq!(code(node.done(got)), ErrorCode::Gone);
    assert_eq!(code(node.append_from("a/b/met", "bob")), ErrorCode::Gone);
    // The conversation that was not accessed is found by the views.
    while node.views().tend().unwrap() {}
    node.line.step();
    while node.views().tend().unwrap() {}
    assert_eq!(
        node.views()
            .opened()
            .unwrap()
            .0
            .expired(u64::MAX, 10)
            .unwrap()
            .len(),
        1
    );
    let node = node.crash();
    let mut line = node.line;
    let conversations = node.conversations;
    for name in ["a/b/met", "a/b/left"] {
        let got = conversations.get(&named(name)).map(|mut pending| {
            line.step();
            pending.poll_answer(Waker::noop())
        });
        assert!(matches!(got, Ok(Poll::Ready(Err(ref it))) if it.code() == ErrorCode::Gone));
    }
}

#[test]
fn wall_clock_step_expires_no_conversation() {
    let mut node = Node::start(ViewsLocation::Memory);
    let settings = Settings {
        ttl_ms: 10_000,
        ..Settings::default()
    };
    node.put("a/b/x", "k=v", settings).unwrap();
    node.append_from("a/b/x", "alice").unwrap();
    assert_eq!(node.names(), ["a/b/x"]);
    node.clock.1.store(24 * 3_600_000, Ordering::Relaxed);
    while node.views().tend().unwrap() {}
    assert_eq!(node.names(), ["a/b/x"]);
    node.clock.1.store(0, Ordering::Relaxed);
    node.pass_ms(8_000);
    assert_eq!(node.append_from("a/b/x", "alice").unwrap(), 2);
    // Ten seconds of the steady clock are ten seconds.
    node.pass_ms(11_000);
    assert_eq!(code(node.append_from("a/b/x", "bob")), ErrorCode::Gone);
}

#[test]
fn inbox_watcher_receives_the_newest_state_of_each_change() {
    let mut node = Node::start(ViewsLocation::Memory);
    node.append_from("a/b/x", "alice").unwrap();
    let watch = node.views().watch_inbox("a/b", "alice").unwrap();
    assert_eq!(node.inbox("alice").len(), 1);
    watch.take().unwrap();
    node.append_from("a/b/x", "bob").unwrap();
    node.views().tend().unwrap();
    node.append_from("a/b/x", "bob").unwrap();
    node.views().tend().unwrap();
    let mut context = std::task::Context::from_waker(Waker::noop());
    assert!(watch.poll_changed(&mut context).is_ready());
    let taken = watch.take().unwrap();
    let [Changed::Line(line)] = &taken[..] else {
        panic!("{taken:?}");
    };
    assert_eq!((line.head_seq, line.unread), (3, 2));
    assert!(watch.poll_changed(&mut context).is_pending());
    node.change("a/b/x", &Change::Erase).unwrap();
    node.views().tend().unwrap();
    assert_eq!(watch.take().unwrap(), [Changed::Gone("a/b/x".to_owned())]);
}

/// Facts of messages that were read: number and author.
type Messages = Vec<(u64, String)>;

/// Returns messages 2 to 11 of each conversation: read together, and one conversation after the
/// other. Returns also whether one of the latter could not be read.
fn messages_read(node: &Node) -> (BTreeMap<u64, Messages>, BTreeMap<u64, Messages>, bool) {
    let (views, source) = (node.views(), node.views().source());
    let numbers = 1..source.numbers_end();
    let wanted = numbers.filter_map(|number| {
        let (kind, ..) = views.store.named(StreamId(number))?;
        (kind == Kind::Conversation).then_some(WantedMessages {
            number,
            base: 0,
            seqs: 2..=11,
        })
    });
    let wanted: Vec<_> = wanted.collect();
    let said = |it: MessageFacts<'_>| (it.seq, it.from.to_owned());
    let (mut together, mut each) = (
        BTreeMap::<u64, Messages>::new(),
        BTreeMap::<u64, Messages>::new(),
    );
    source.messages_of_many(&wanted, &mut |number, facts| {
        together.entry(number).or_default().push(said(facts));
    });
    let mut has_failed = false;
    for WantedMessages { number, base, seqs } in wanted {
        let of = each.entry(number).or_default();
        let read = source.messages(number, base, seqs, &mut |facts| of.push(said(facts)));
        has_failed |= read.is_err();
    }
    (together, each, has_failed)
}

#[test]
fn messages_of_many_conversations_equal_those_of_each() {
    let mut node = Node::start(ViewsLocation::Memory);
    for number in 0..36 {
        let name = ["a/b/x", "a/b/y", "a/b/z"][number % 3];
        node.append_from(name, PEOPLE[number % 7 % 3]).unwrap();
    }
    let (together, each, has_failed) = messages_read(&node);
    assert_eq!(
        (together.len(), together.values().map(Vec::len).sum()),
        (3, 30)
    );
    assert_eq!((&together, has_failed), (&each, false));
    // A damaged block hides its own message and those after it in its conversation, and no others.
    let whole = together;
    let node = node.crash();
    node.disk
        .flip("line/00000000000000000001.seg", (4096 + 5000) * 8)
        .unwrap();
    let (together, _, has_failed) = messages_read(&node);
    assert!(has_failed);
    let damaged: Vec<_> = whole
        .iter()
        .filter(|(number, all)| together[number] != **all)
        .collect();
    let [(number, all)] = damaged[..] else {
        panic!("{together:?}");
    };
    let left = &together[number];
    assert!(!left.is_empty() && all.starts_with(left), "{left:?}");
}

#[test]
fn blocks_of_new_messages_are_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = Node::start(ViewsLocation::Directory(dir.path().to_owned()));
    for number in 0..204 {
        if number == 4 {
            // The views know the conversations, durably.
            while node.views().tend().unwrap() {}
            node.pass_ms(1_000);
            assert_eq!(node.views().tend(), Ok(false));
        }
        let (name, from) = (format!("a/b/c{}", number % 4), PEOPLE[number % 3]);
        node.append_from(&name, from).unwrap();
    }
    // Afterwards the blocks are not in memory.
    let node = node.crash();
    let unfiled = node.journal.filing().unfiled_bytes;
    let before = node.disk.read();
    while node.views().tend().unwrap() {}
    let read = node.disk.read() - before;
    assert!(200 * 72 < read && read <= unfiled, "{read} of {unfiled}");
    assert_eq!(node.views().progress().lag_events, 0);
    assert_eq!(node.inbox("alice")[0].1, 51);
    assert_eq!(node.dump(), node.dump_rebuilt());
}
