//! Settings, summaries, cursors, forks and erasure of conversations.

use conversations::record::{EventRef, EventTag};
use journal::ReadLimit;
use store::{Kind, Store};

use super::*;

fn put(metadata: &str) -> Change {
    Change::Put {
        metadata: Some(metadata.as_bytes().to_vec()),
        settings: None,
        is_archived: None,
    }
}

fn archive(is_archived: bool) -> Change {
    Change::Put {
        metadata: None,
        settings: None,
        is_archived: Some(is_archived),
    }
}

fn cursor(who: &str, seq: u64) -> Change {
    Change::Cursor {
        who: who.to_owned(),
        seq,
    }
}

impl Fixture {
    /// Makes a change and waits for the disk.
    fn changed(&mut self, name: &str, change: &Change) -> Result<ChangeResult, ConversationError> {
        let mut pending = self.conversations().change(&named(name), None, change)?;
        self.line.step();
        done(&mut pending).unwrap()
    }

    fn view(&self, name: &str) -> Result<View, ConversationError> {
        let mut pending = self.conversations().get(&named(name))?;
        done(&mut pending).unwrap()
    }
}

#[test]
fn first_change_creates_the_conversation_and_state_survives_power_failure() {
    let mut fixture = Fixture::new();
    let first = fixture.changed("a/b/c", &put("one")).unwrap();
    assert!(first.is_created);
    let second = fixture.changed("a/b/c", &put("two")).unwrap();
    assert!(!second.is_created);
    assert!(second.view.state.version > first.view.state.version);
    fixture.appended("a/b/c", &["x"]);
    fixture.changed("a/b/c", &cursor("alice", 1)).unwrap();
    let before = fixture.view("a/b/c").unwrap();
    assert_eq!(before.state.metadata, b"two");
    assert_eq!((before.head_seq, before.start_seq), (1, 1));
    assert_eq!(before.state.cursors.get("alice"), Some(1));
    let fixture = fixture.crash();
    assert_eq!(fixture.view("a/b/c"), Ok(before));
}

#[test]
fn change_with_an_outdated_expected_version_is_a_conflict() {
    let mut fixture = Fixture::new();
    let version = fixture
        .changed("a/b/c", &put("one"))
        .unwrap()
        .view
        .state
        .version;
    let name = named("a/b/c");
    let change = put("two");
    let mut pending = fixture
        .conversations()
        .change(&name, Some(version + 1), &change)
        .unwrap();
    let refusal = done(&mut pending).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Conflict);
    assert_eq!(refusal.details().version, Some(version));
    let mut pending = fixture
        .conversations()
        .change(&name, Some(version), &change)
        .unwrap();
    assert_eq!(done(&mut pending), None);
    fixture.line.step();
    assert!(done(&mut pending).unwrap().is_ok());
}

#[test]
fn cursor_updates_only_advance_and_keep_state_stream_short() {
    let mut fixture = Fixture::new();
    let ids: Vec<_> = (0..200).map(|it| it.to_string()).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    fixture.appended("a/b/c", &ids);
    for seq in 1..=200 {
        fixture.changed("a/b/c", &cursor("alice", seq)).unwrap();
    }
    fixture.changed("a/b/c", &cursor("alice", 7)).unwrap();
    let location = {
        let store = &fixture.conversations().store;
        store.find(Kind::Conversation, "a/b/c").unwrap()
    };
    let journal = &fixture.conversations().store.journal;
    let state = journal.stream(location.shard, Store::companion(location.stream));
    let state = state.unwrap();
    assert!(state.next - state.start <= 65, "{state:?}");
    let fixture = fixture.crash();
    assert_eq!(
        fixture.view("a/b/c").unwrap().state.cursors.get("alice"),
        Some(200)
    );
    let beyond = fixture.conversations();
    let mut beyond = beyond
        .change(&named("a/b/c"), None, &cursor("bob", 201))
        .unwrap();
    assert!(done(&mut beyond).unwrap().is_err());
}

#[test]
fn archived_conversation_is_read_only_until_reopened() {
    let mut fixture = Fixture::new();
    fixture.appended("a/b/c", &["one"]);
    fixture.changed("a/b/c", &archive(true)).unwrap();
    let mut refused = fixture.append("a/b/c", None, &["two"]).unwrap();
    assert_eq!(
        done(&mut refused).unwrap().unwrap_err().code(),
        ErrorCode::Conflict
    );
    // A repeated change has no effect.
    assert_eq!(fixture.appended("a/b/c", &["one"]).deduplicated, 1);
    assert_eq!(fixture.read("a/b/c", Side::Last, 10).unwrap().len(), 1);
    fixture.changed("a/b/c", &archive(false)).unwrap();
    assert_eq!(fixture.appended("a/b/c", &["two"]).head_seq, 2);
}

#[test]
fn erased_conversation_stays_gone_after_restart_and_ends_watches() {
    let mut fixture = Fixture::new();
    fixture.changed("a/b/c", &put("secret")).unwrap();
    fixture.appended("a/b/c", &["one", "two"]);
    let mut watch = fixture.conversations().watch(&named("a/b/c"), 0).unwrap();
    assert_eq!(shown(&mut watch).last().unwrap(), "head 2");
    let mut deleted = fixture.conversations().delete(&named("a/b/c")).unwrap();
    assert_eq!(done(&mut deleted), None);
    fixture.line.step();
    assert_eq!(done(&mut deleted), Some(Ok(())));
    assert_eq!(shown(&mut watch), ["gone"]);
    drop(watch);
    let is_gone = |fixture: &Fixture| {
        let mut append = fixture.append("a/b/c", None, &["three"]).unwrap();
        assert_eq!(
            done(&mut append).unwrap().unwrap_err().code(),
            ErrorCode::Gone
        );
        let read = fixture.read("a/b/c", Side::After(0), 10).unwrap_err();
        assert_eq!(read.code(), ErrorCode::Gone);
        assert_eq!(fixture.view("a/b/c").unwrap_err().code(), ErrorCode::Gone);
        let again = fixture.conversations().delete(&named("a/b/c")).unwrap_err();
        assert_eq!(again.code(), ErrorCode::Gone);
    };
    is_gone(&fixture);
    let fixture = fixture.crash();
    is_gone(&fixture);
}

#[test]
fn state_changes_have_events_that_reference_the_state() {
    let mut fixture = Fixture::new();
    fixture.changed("a/b/c", &put("one")).unwrap();
    fixture.appended("a/b/c", &["one"]);
    fixture.changed("a/b/c", &cursor("alice", 1)).unwrap();
    drop(fixture.conversations().delete(&named("a/b/c")).unwrap());
    fixture.line.step();
    let store = &fixture.conversations().store;
    let location = store.find(Kind::Conversation, "a/b/c").unwrap();
    let partition = format!("a/b/{}", location.shard.0);
    let events = store.find(Kind::Events, &partition).unwrap();
    let all = ReadLimit {
        records: 100,
        bytes: 1 << 20,
    };
    let read = store
        .journal
        .read(events.shard, events.stream, 0, all)
        .unwrap();
    let told: Vec<_> = read
        .records
        .iter()
        .map(|record| {
            let event = EventRef::decode(&record.payload).unwrap();
            assert_eq!(event.conversation, location.stream.0);
            (EventTag::from_u8(record.tag).unwrap(), event.offset)
        })
        .collect();
    let expected = [
        (EventTag::State, 0),
        (EventTag::Message, 0),
        (EventTag::State, 1),
        (EventTag::Erased, 2),
    ];
    assert_eq!(told, expected);
}

#[test]
fn fork_copies_messages_up_to_its_point_and_then_diverges() {
    let mut fixture = Fixture::new();
    fixture.changed("a/b/c", &put("meta")).unwrap();
    let ids: Vec<_> = (1..=700).map(|it| format!("m{it}")).collect();
    for ids in ids.chunks(200) {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        fixture.appended("a/b/c", &ids);
    }
    let fork = |fixture: &Fixture, at_seq| {
        fixture
            .conversations()
            .fork(&named("a/b/c"), &named("a/b/d"), at_seq)
    };
    assert_eq!(
        fork(&fixture, 701).unwrap_err().code(),
        ErrorCode::InvalidArgument
    );
    let mut forked = fork(&fixture, 600).unwrap();
    assert_eq!(done(&mut forked), None);
    fixture.line.step();
    let view = done(&mut forked).unwrap().unwrap().view;
    assert_eq!((view.head_seq, &*view.state.metadata), (600, &b"meta"[..]));
    let origin = view.state.origin.unwrap();
    assert_eq!((&*origin.conversation, origin.seq), ("a/b/c", 600));
    let all = |fixture: &Fixture, name| fixture.read(name, Side::After(0), 1_000).unwrap();
    assert_eq!(all(&fixture, "a/b/d"), all(&fixture, "a/b/c")[..600]);
    // A message of the original is recognised in the fork by its id.
    let appended = fixture.appended("a/b/d", &["m600", "other"]);
    assert_eq!((appended.deduplicated, appended.head_seq), (1, 601));
    assert_eq!(all(&fixture, "a/b/c").len(), 700);
    let mut again = fork(&fixture, 600).unwrap();
    assert_eq!(
        done(&mut again).unwrap().unwrap_err().code(),
        ErrorCode::Conflict
    );
}

#[test]
fn context_window_has_the_newest_messages_within_its_budget() {
    let mut fixture = Fixture::new();
    let ids: Vec<_> = (1..=300).map(|it| format!("message-{it}")).collect();
    for ids in ids.chunks(100) {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        fixture.appended("a/b/c", &ids);
    }
    let context = |fixture: &Fixture, budget| {
        let policy = Policy {
            budget,
            ..Policy::default()
        };
        let conversations = fixture.conversations();
        let mut pending = conversations.context(&named("a/b/c"), Some(&policy))?;
        done(&mut pending).unwrap()
    };
    let read = context(&fixture, 100).unwrap();
    assert!(read.cut.tokens <= 100, "{:?}", read.cut);
    let shown: Vec<_> = read.messages().map(|it| it.unwrap().message).collect();
    assert!(shown.len() > 20, "{}", shown.len());
    assert_eq!(shown.last().unwrap().seq, 300);
    for message in &shown {
        assert_eq!(text(message.view.parts), format!("message-{}", message.seq));
    }
    let refusal = context(&fixture, 1).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::OverBudget);
    assert_eq!(
        context(&fixture, 0).unwrap_err().code(),
        ErrorCode::InvalidArgument
    );
    let whole = context(&fixture, 1_000_000).unwrap();
    assert_eq!(whole.cut.messages.len(), 300);
}

#[test]
fn keep_last_trims_the_oldest_messages() {
    let mut fixture = Fixture::new();
    let settings = Settings {
        keep_last: 10,
        ..Settings::default()
    };
    let change = Change::Put {
        metadata: None,
        settings: Some(settings),
        is_archived: None,
    };
    fixture.changed("a/b/c", &change).unwrap();
    for number in 1..=100 {
        fixture.appended("a/b/c", &[&number.to_string()]);
        fixture.appended("a/b/all", &[&number.to_string()]);
    }
    fixture.world.pass_ms(2_000);
    fixture.line.step();
    let view = fixture.view("a/b/c").unwrap();
    assert_eq!((view.start_seq, view.head_seq), (91, 100));
    let seqs = |fixture: &Fixture| {
        let read = fixture.read("a/b/c", Side::Last, 100).unwrap();
        (read[0].0, read[read.len() - 1].0)
    };
    assert_eq!(seqs(&fixture), (91, 100));
    let refusal = fixture.read("a/b/c", Side::After(50), 10).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Trimmed);
    assert_eq!(refusal.details().start_seq, Some(91));
    assert_eq!(fixture.read("a/b/all", Side::Last, 200).unwrap().len(), 100);
    // A number is not used again, and a stored message is recognised by its id.
    let mut fixture = fixture.crash();
    assert_eq!(seqs(&fixture), (91, 100));
    let appended = fixture.appended("a/b/c", &["95", "101"]);
    assert_eq!(appended.seqs().collect::<Vec<_>>(), [95, 101]);
}

#[test]
fn keep_bytes_trims_the_oldest_messages() {
    let mut fixture = Fixture::new();
    let settings = Settings {
        keep_bytes: 10_000,
        ..Settings::default()
    };
    let change = Change::Put {
        metadata: None,
        settings: Some(settings),
        is_archived: None,
    };
    fixture.changed("a/b/c", &change).unwrap();
    let large = "x".repeat(1_000);
    for number in 1..=100 {
        let id = number.to_string();
        let batch = Batch {
            expect: None,
            messages: &[message(&id, &large)],
        };
        drop(
            fixture
                .conversations()
                .append(&named("a/b/c"), batch)
                .unwrap(),
        );
        fixture.line.step();
    }
    fixture.world.pass_ms(2_000);
    fixture.line.step();
    let left = fixture.read("a/b/c", Side::Last, 100).unwrap();
    assert!((10..=12).contains(&left.len()), "{}", left.len());
    assert_eq!(left[left.len() - 1].0, 100);
}
