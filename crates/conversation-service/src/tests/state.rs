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

impl Kept {
    /// Makes a change and waits for the disk.
    fn changed(&mut self, name: &str, change: &Change) -> Result<Changed, ConversationError> {
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
fn a_conversation_is_made_by_what_is_said_of_it_and_that_outlives_a_power_failure() {
    let mut kept = Kept::new();
    let first = kept.changed("a/b/c", &put("one")).unwrap();
    assert!(first.is_created);
    let second = kept.changed("a/b/c", &put("two")).unwrap();
    assert!(!second.is_created);
    assert!(second.view.state.version > first.view.state.version);
    kept.appended("a/b/c", &["x"]);
    kept.changed("a/b/c", &cursor("alice", 1)).unwrap();
    let before = kept.view("a/b/c").unwrap();
    assert_eq!(before.state.metadata, b"two");
    assert_eq!((before.head_seq, before.start_seq), (1, 1));
    assert_eq!(before.state.cursors.get("alice"), Some(1));
    let kept = kept.crash();
    assert_eq!(kept.view("a/b/c"), Ok(before));
}

#[test]
fn a_change_of_another_version_than_expected_is_refused_and_changes_nothing() {
    let mut kept = Kept::new();
    let version = kept
        .changed("a/b/c", &put("one"))
        .unwrap()
        .view
        .state
        .version;
    let name = named("a/b/c");
    let change = put("two");
    let mut pending = kept
        .conversations()
        .change(&name, Some(version + 1), &change)
        .unwrap();
    let refusal = done(&mut pending).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Conflict);
    assert_eq!(refusal.details().version, Some(version));
    let mut pending = kept
        .conversations()
        .change(&name, Some(version), &change)
        .unwrap();
    assert_eq!(done(&mut pending), None);
    kept.line.step();
    assert!(done(&mut pending).unwrap().is_ok());
}

#[test]
fn many_cursors_move_forward_and_leave_a_short_stream_of_state() {
    let mut kept = Kept::new();
    let ids: Vec<_> = (0..200).map(|it| it.to_string()).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    kept.appended("a/b/c", &ids);
    for seq in 1..=200 {
        kept.changed("a/b/c", &cursor("alice", seq)).unwrap();
    }
    kept.changed("a/b/c", &cursor("alice", 7)).unwrap();
    let location = {
        let store = &kept.conversations().store;
        store.find(Kind::Conversation, "a/b/c").unwrap()
    };
    let journal = &kept.conversations().store.journal;
    let state = journal.stream(location.shard, Store::companion(location.stream));
    let state = state.unwrap();
    assert!(state.next - state.start <= 65, "{state:?}");
    let kept = kept.crash();
    assert_eq!(
        kept.view("a/b/c").unwrap().state.cursors.get("alice"),
        Some(200)
    );
    let beyond = kept.conversations();
    let mut beyond = beyond
        .change(&named("a/b/c"), None, &cursor("bob", 201))
        .unwrap();
    assert!(done(&mut beyond).unwrap().is_err());
}

#[test]
fn an_archived_conversation_is_read_and_takes_nothing_until_it_is_opened_again() {
    let mut kept = Kept::new();
    kept.appended("a/b/c", &["one"]);
    kept.changed("a/b/c", &archive(true)).unwrap();
    let mut refused = kept.append("a/b/c", None, &["two"]).unwrap();
    assert_eq!(
        done(&mut refused).unwrap().unwrap_err().code(),
        ErrorCode::Conflict
    );
    // A repeated change has no effect.
    assert_eq!(kept.appended("a/b/c", &["one"]).deduplicated, 1);
    assert_eq!(kept.read("a/b/c", Side::Last, 10).unwrap().len(), 1);
    kept.changed("a/b/c", &archive(false)).unwrap();
    assert_eq!(kept.appended("a/b/c", &["two"]).head_seq, 2);
}

#[test]
fn an_erased_conversation_is_gone_for_ever_and_whoever_watches_is_told() {
    let mut kept = Kept::new();
    kept.changed("a/b/c", &put("secret")).unwrap();
    kept.appended("a/b/c", &["one", "two"]);
    let mut watch = kept.conversations().watch(&named("a/b/c"), 0).unwrap();
    assert_eq!(shown(&mut watch).last().unwrap(), "head 2");
    let mut deleted = kept.conversations().delete(&named("a/b/c")).unwrap();
    assert_eq!(done(&mut deleted), None);
    kept.line.step();
    assert_eq!(done(&mut deleted), Some(Ok(())));
    assert_eq!(shown(&mut watch), ["gone"]);
    drop(watch);
    let is_gone = |kept: &Kept| {
        let mut append = kept.append("a/b/c", None, &["three"]).unwrap();
        assert_eq!(
            done(&mut append).unwrap().unwrap_err().code(),
            ErrorCode::Gone
        );
        let read = kept.read("a/b/c", Side::After(0), 10).unwrap_err();
        assert_eq!(read.code(), ErrorCode::Gone);
        assert_eq!(kept.view("a/b/c").unwrap_err().code(), ErrorCode::Gone);
        let again = kept.conversations().delete(&named("a/b/c")).unwrap_err();
        assert_eq!(again.code(), ErrorCode::Gone);
    };
    is_gone(&kept);
    let kept = kept.crash();
    is_gone(&kept);
}

#[test]
fn what_changes_has_events_that_lead_to_the_state() {
    let mut kept = Kept::new();
    kept.changed("a/b/c", &put("one")).unwrap();
    kept.appended("a/b/c", &["one"]);
    kept.changed("a/b/c", &cursor("alice", 1)).unwrap();
    drop(kept.conversations().delete(&named("a/b/c")).unwrap());
    kept.line.step();
    let store = &kept.conversations().store;
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
fn a_fork_has_the_messages_up_to_its_point_and_goes_its_own_way() {
    let mut kept = Kept::new();
    kept.changed("a/b/c", &put("meta")).unwrap();
    let ids: Vec<_> = (1..=700).map(|it| format!("m{it}")).collect();
    for ids in ids.chunks(200) {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        kept.appended("a/b/c", &ids);
    }
    let fork = |kept: &Kept, at_seq| {
        kept.conversations()
            .fork(&named("a/b/c"), &named("a/b/d"), at_seq)
    };
    assert_eq!(
        fork(&kept, 701).unwrap_err().code(),
        ErrorCode::InvalidArgument
    );
    let mut forked = fork(&kept, 600).unwrap();
    assert_eq!(done(&mut forked), None);
    kept.line.step();
    let view = done(&mut forked).unwrap().unwrap().view;
    assert_eq!((view.head_seq, &*view.state.metadata), (600, &b"meta"[..]));
    let origin = view.state.origin.unwrap();
    assert_eq!((&*origin.conversation, origin.seq), ("a/b/c", 600));
    let all = |kept: &Kept, name| kept.read(name, Side::After(0), 1_000).unwrap();
    assert_eq!(all(&kept, "a/b/d"), all(&kept, "a/b/c")[..600]);
    // A message of the original is recognised in the fork by its id.
    let appended = kept.appended("a/b/d", &["m600", "other"]);
    assert_eq!((appended.deduplicated, appended.head_seq), (1, 601));
    assert_eq!(all(&kept, "a/b/c").len(), 700);
    let mut again = fork(&kept, 600).unwrap();
    assert_eq!(
        done(&mut again).unwrap().unwrap_err().code(),
        ErrorCode::Conflict
    );
}

#[test]
fn a_window_is_read_back_with_its_messages_and_never_over_its_budget() {
    let mut kept = Kept::new();
    let ids: Vec<_> = (1..=300).map(|it| format!("message-{it}")).collect();
    for ids in ids.chunks(100) {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        kept.appended("a/b/c", &ids);
    }
    let context = |kept: &Kept, budget| {
        let policy = Policy {
            budget,
            ..Policy::default()
        };
        let conversations = kept.conversations();
        let mut pending = conversations.context(&named("a/b/c"), Some(&policy))?;
        done(&mut pending).unwrap()
    };
    let read = context(&kept, 100).unwrap();
    assert!(read.cut.tokens <= 100, "{:?}", read.cut);
    let shown: Vec<_> = read.messages().map(|it| it.unwrap().message).collect();
    assert!(shown.len() > 20, "{}", shown.len());
    assert_eq!(shown.last().unwrap().seq, 300);
    for message in &shown {
        assert_eq!(text(message.view.parts), format!("message-{}", message.seq));
    }
    let refusal = context(&kept, 1).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::OverBudget);
    assert_eq!(
        context(&kept, 0).unwrap_err().code(),
        ErrorCode::InvalidArgument
    );
    let whole = context(&kept, 1_000_000).unwrap();
    assert_eq!(whole.cut.messages.len(), 300);
}

#[test]
fn a_conversation_that_keeps_only_so_many_messages_lets_go_of_the_oldest() {
    let mut kept = Kept::new();
    let settings = Settings {
        keep_last: 10,
        ..Settings::default()
    };
    let change = Change::Put {
        metadata: None,
        settings: Some(settings),
        is_archived: None,
    };
    kept.changed("a/b/c", &change).unwrap();
    for number in 1..=100 {
        kept.appended("a/b/c", &[&number.to_string()]);
        kept.appended("a/b/all", &[&number.to_string()]);
    }
    kept.world.pass_ms(2_000);
    kept.line.step();
    let view = kept.view("a/b/c").unwrap();
    assert_eq!((view.start_seq, view.head_seq), (91, 100));
    let seqs = |kept: &Kept| {
        let read = kept.read("a/b/c", Side::Last, 100).unwrap();
        (read[0].0, read[read.len() - 1].0)
    };
    assert_eq!(seqs(&kept), (91, 100));
    let refusal = kept.read("a/b/c", Side::After(50), 10).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Trimmed);
    assert_eq!(refusal.details().start_seq, Some(91));
    assert_eq!(kept.read("a/b/all", Side::Last, 200).unwrap().len(), 100);
    // A number is not used again, and a stored message is recognised by its id.
    let mut kept = kept.crash();
    assert_eq!(seqs(&kept), (91, 100));
    let appended = kept.appended("a/b/c", &["95", "101"]);
    assert_eq!(appended.seqs().collect::<Vec<_>>(), [95, 101]);
}

#[test]
fn a_conversation_that_keeps_only_so_many_bytes_lets_go_of_the_oldest() {
    let mut kept = Kept::new();
    let settings = Settings {
        keep_bytes: 10_000,
        ..Settings::default()
    };
    let change = Change::Put {
        metadata: None,
        settings: Some(settings),
        is_archived: None,
    };
    kept.changed("a/b/c", &change).unwrap();
    let large = "x".repeat(1_000);
    for number in 1..=100 {
        let id = number.to_string();
        let batch = Batch {
            expect: None,
            messages: &[message(&id, &large)],
        };
        drop(kept.conversations().append(&named("a/b/c"), batch).unwrap());
        kept.line.step();
    }
    kept.world.pass_ms(2_000);
    kept.line.step();
    let left = kept.read("a/b/c", Side::Last, 100).unwrap();
    assert!((10..=12).contains(&left.len()), "{}", left.len());
    assert_eq!(left[left.len() - 1].0, 100);
}
