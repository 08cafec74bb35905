//! Appending, reading and watching messages.

use conversations::record::{EventRef, EventTag};
use journal::ReadLimit;
use journal::disk::simulated::{Fault, Kind as Call};
use store::Kind;

use super::*;

#[test]
fn message_is_acknowledged_and_readable_once_durable() {
    let mut fixture = Fixture::new();
    let mut pending = fixture.append("a/b/c", None, &["one", "two"]).unwrap();
    assert_eq!(done(&mut pending), None);
    assert_eq!(fixture.read("a/b/c", Side::After(0), 10), Ok(Vec::new()));
    fixture.line.step();
    let appended = done(&mut pending).unwrap().unwrap();
    assert_eq!((appended.first_seq, appended.last_seq), (1, 2));
    assert_eq!((appended.head_seq, appended.deduplicated), (2, 0));
    let read = fixture.read("a/b/c", Side::After(0), 10).unwrap();
    assert_eq!(read, [(1, "one".to_owned()), (2, "two".to_owned())]);

    let fixture = fixture.crash();
    assert_eq!(fixture.read("a/b/c", Side::After(0), 10), Ok(read));
}

#[test]
fn crash_before_sync_leaves_the_whole_batch_or_none_of_it() {
    let mut fixture = Fixture::new();
    fixture.appended("a/b/c", &["one"]);
    drop(fixture.append("a/b/c", None, &["two", "three"]).unwrap());
    let mut fixture = fixture.crash();
    let left = fixture.read("a/b/c", Side::After(0), 10).unwrap().len();
    assert!(left == 1 || left == 3, "{left}");
    // A retry returns the same message, whichever it was.
    let appended = fixture.appended("a/b/c", &["two", "three"]);
    assert_eq!((appended.first_seq, appended.last_seq), (2, 3));
    assert_eq!(appended.deduplicated, left - 1);
}

#[test]
fn retried_append_gets_the_original_answer_once_durable() {
    let mut fixture = Fixture::new();
    let mut first = fixture.append("a/b/c", Some(0), &["one", "two"]).unwrap();
    let mut again = fixture.append("a/b/c", Some(0), &["one", "two"]).unwrap();
    assert_eq!((done(&mut first), done(&mut again)), (None, None));
    fixture.line.step();
    let (first, again) = (done(&mut first).unwrap(), done(&mut again).unwrap());
    let (first, again) = (first.unwrap(), again.unwrap());
    assert_eq!(first.seqs().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(again.seqs().collect::<Vec<_>>(), [1, 2]);
    assert_eq!((first.deduplicated, again.deduplicated), (0, 2));
    assert_eq!(fixture.read("a/b/c", Side::Last, 10).unwrap().len(), 2);

    // The same after a restart, when the id must be looked up.
    let mut fixture = fixture.crash();
    let again = fixture.appended("a/b/c", &["two", "three"]);
    assert_eq!(again.seqs().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(again.deduplicated, 1);
}

#[test]
fn reused_message_id_is_refused_once_the_original_is_durable() {
    let mut fixture = Fixture::new();
    drop(fixture.append("a/b/c", None, &["one"]).unwrap());
    let other = [message("zero", "zero"), message("one", "other")];
    let batch = Batch {
        expect: None,
        messages: &other,
    };
    let mut refused = fixture
        .conversations()
        .append(&named("a/b/c"), batch)
        .unwrap();
    assert!(done(&mut refused).is_none());
    fixture.line.step();
    let refusal = done(&mut refused).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::IdReused);
    assert_eq!(
        (refusal.details().index, refusal.details().seq),
        (Some(1), Some(1))
    );
    assert_eq!(fixture.read("a/b/c", Side::Last, 10).unwrap().len(), 1);
}

#[test]
fn head_conflict_is_reported_once_that_head_is_durable() {
    let mut fixture = Fixture::new();
    drop(fixture.append("a/b/c", Some(0), &["one"]).unwrap());
    let mut refused = fixture.append("a/b/c", Some(0), &["two"]).unwrap();
    assert!(done(&mut refused).is_none());
    fixture.line.step();
    let refusal = done(&mut refused).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Conflict);
    assert_eq!(refusal.details().head_seq, Some(1));
    let mut taken = fixture.append("a/b/c", Some(1), &["two"]).unwrap();
    fixture.line.step();
    assert_eq!(done(&mut taken).unwrap().unwrap().head_seq, 2);
}

#[test]
fn messages_without_an_id_get_generated_ids() {
    let mut fixture = Fixture::new();
    let appended = fixture.appended("a/b/c", &["", "named", ""]);
    let [one, other] = appended.made_ids() else {
        panic!("{appended:?}");
    };
    assert_ne!(one, other);
    let page = Page {
        side: Side::Last,
        limit: 10,
        bytes: 1 << 20,
    };
    let read = fixture.conversations().read(&named("a/b/c"), page).unwrap();
    let ids: Vec<_> = read.messages().map(|it| it.unwrap().view.id).collect();
    assert_eq!(ids, [one, "named", other]);
}

#[test]
fn message_pages_are_read_in_both_directions() {
    let mut fixture = Fixture::new();
    let ids: Vec<_> = (1..=100).map(|number| format!("m{number}")).collect();
    for ids in ids.chunks(7) {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        fixture.appended("a/b/c", &ids);
    }
    let seqs = |side, limit| {
        let read = fixture.read("a/b/c", side, limit).unwrap();
        let seqs: Vec<_> = read.iter().map(|(seq, _)| *seq).collect();
        assert!(read.iter().all(|(seq, text)| *text == format!("m{seq}")));
        assert!(seqs.is_sorted_by(|one, next| one + 1 == *next));
        (seqs.first().copied(), seqs.last().copied())
    };
    assert_eq!(seqs(Side::After(0), 30), (Some(1), Some(30)));
    assert_eq!(seqs(Side::After(90), 30), (Some(91), Some(100)));
    assert_eq!(seqs(Side::After(100), 30), (None, None));
    assert_eq!(seqs(Side::After(u64::MAX), 30), (None, None));
    assert_eq!(seqs(Side::Before(51), 50), (Some(1), Some(50)));
    assert_eq!(seqs(Side::Before(51), 40), (Some(11), Some(50)));
    assert_eq!(seqs(Side::Before(u64::MAX), 3), (Some(98), Some(100)));
    assert_eq!(seqs(Side::Before(1), 3), (None, None));
    assert_eq!(seqs(Side::Last, 3), (Some(98), Some(100)));
    assert_eq!(seqs(Side::Last, 1_000), (Some(1), Some(100)));
    // Limited by bytes: the newest messages, at least one.
    for (bytes, count) in [(1, 1), (100, 3)] {
        let page = Page {
            side: Side::Last,
            limit: 50,
            bytes,
        };
        let read = fixture.conversations().read(&named("a/b/c"), page).unwrap();
        let seqs: Vec<_> = read.messages().map(|it| it.unwrap().seq).collect();
        assert_eq!(seqs.last(), Some(&100), "{seqs:?}");
        assert!(seqs.len() <= count, "{seqs:?}");
    }
}

#[test]
fn reading_an_unknown_conversation_fails_and_creates_nothing() {
    let fixture = Fixture::new();
    let refusal = fixture.read("a/b/c", Side::Last, 1).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::NotFound);
    let conversations = fixture.conversations();
    let watch = conversations.watch(&named("a/b/c"), 0).unwrap_err();
    assert_eq!(watch.code(), ErrorCode::NotFound);
    let view = conversations.get(&named("a/b/c")).unwrap_err();
    assert_eq!(view.code(), ErrorCode::NotFound);
    assert_eq!(conversations.rooms.loaded_count(), 0);
}

#[test]
fn invalid_names_and_batches_are_refused_with_the_index() {
    let fixture = Fixture::new();
    let code = |name: &str, ids: &[&str]| fixture.append(name, None, ids).unwrap_err().code();
    assert_eq!(code("telpher/a/b", &["x"]), ErrorCode::InvalidArgument);
    assert_eq!(code("a/b/c/d", &["x"]), ErrorCode::InvalidArgument);
    assert_eq!(code("a/b/c", &[]), ErrorCode::InvalidArgument);
    assert_eq!(code("a/b/c", &["x"; 257]), ErrorCode::TooLarge);
    let refusal = fixture.append("a/b/c", None, &["x", "a b"]).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::InvalidArgument);
    assert_eq!(refusal.details().index, Some(1));
    let large = "x".repeat((1 << 20) + 1);
    let batch = Batch {
        expect: None,
        messages: &[message("x", &large)],
    };
    let refused = fixture.conversations().append(&named("a/b/c"), batch);
    assert_eq!(refused.unwrap_err().code(), ErrorCode::TooLarge);
}

#[test]
fn each_message_has_an_event_that_references_it() {
    let mut fixture = Fixture::new();
    for round in 0..5 {
        for name in ["a/b/c", "a/b/d", "a/other/e"] {
            fixture.appended(name, &[&format!("{round}"), &format!("{round}x")]);
        }
    }
    let store = &fixture.conversations().store;
    let all = ReadLimit {
        records: 1_000,
        bytes: 1 << 20,
    };
    for name in ["a/b/c", "a/b/d", "a/other/e"] {
        let location = store.find(Kind::Conversation, name).unwrap();
        let namespace = name.rsplit_once('/').unwrap().0;
        let partition = format!("{namespace}/{}", location.shard.0);
        let events = store.find(Kind::Events, &partition).unwrap();
        assert_eq!(events.shard, location.shard);
        let read = |stream| store.journal.read(location.shard, stream, 0, all).unwrap();
        let events = read(events.stream).records;
        for record in read(location.stream).records {
            let message = MessageView::decode(&record.payload).unwrap();
            let event = &events[message.links.event as usize];
            assert_eq!(EventTag::from_u8(event.tag), Some(EventTag::Message));
            let event = EventRef::decode(&event.payload).unwrap();
            assert_eq!(event.conversation, location.stream.0);
            assert_eq!(event.offset, record.offset);
        }
    }
}

#[test]
fn watcher_gets_stored_then_new_messages_without_gap_or_duplicate() {
    let mut fixture = Fixture::new();
    fixture.appended("a/b/c", &["one", "two"]);
    let mut watch = fixture.conversations().watch(&named("a/b/c"), 0).unwrap();
    let mut late = fixture.conversations().watch(&named("a/b/c"), 2).unwrap();
    assert_eq!(shown(&mut watch), ["1 one", "2 two", "head 2"]);
    assert_eq!(shown(&mut late), ["head 2"]);
    drop(fixture.append("a/b/c", None, &["three"]).unwrap());
    assert_eq!(shown(&mut watch), Vec::<String>::new());
    fixture.line.step();
    assert_eq!(shown(&mut watch), ["3 three"]);
    for number in 4..=200 {
        drop(
            fixture
                .append("a/b/c", None, &[&format!("m{number}")])
                .unwrap(),
        );
    }
    fixture.line.step();
    let new: Vec<_> = (4..=200)
        .map(|number| format!("{number} m{number}"))
        .collect();
    assert_eq!(shown(&mut watch), new);
    assert_eq!(shown(&mut late).len(), 198);
    let beyond = fixture.conversations().watch(&named("a/b/c"), 201);
    assert_eq!(beyond.unwrap_err().details().head_seq, Some(200));
}

#[test]
fn watchers_beyond_the_limit_are_refused_as_busy() {
    let mut fixture = Fixture::with(Options {
        watchers_max: 2,
        ..Options::default()
    });
    fixture.appended("a/b/c", &["one"]);
    let watch = |fixture: &Fixture| fixture.conversations().watch(&named("a/b/c"), 0);
    let (one, _other) = (watch(&fixture).unwrap(), watch(&fixture).unwrap());
    assert_eq!(watch(&fixture).unwrap_err().code(), ErrorCode::Busy);
    drop(one);
    assert!(watch(&fixture).is_ok());
}

#[test]
fn idle_conversation_is_unloaded_and_watched_one_stays_loaded() {
    let mut fixture = Fixture::new();
    fixture.appended("a/b/c", &["one"]);
    fixture.appended("a/b/d", &["one"]);
    let watch = fixture.conversations().watch(&named("a/b/d"), 0).unwrap();
    assert_eq!(fixture.conversations().rooms.loaded_count(), 2);
    fixture.world.pass_ms(15_000);
    assert_eq!(fixture.conversations().rooms.loaded_count(), 1);
    drop(watch);
    fixture.world.pass_ms(15_000);
    assert_eq!(fixture.conversations().rooms.loaded_count(), 0);
    let again = fixture.appended("a/b/c", &["one", "two"]);
    assert_eq!((again.deduplicated, again.head_seq), (1, 2));
}

#[test]
fn disk_failure_makes_appends_unconfirmed_and_ends_watches() {
    let mut fixture = Fixture::new();
    fixture.appended("a/b/c", &["one"]);
    let mut watch = fixture.conversations().watch(&named("a/b/c"), 1).unwrap();
    assert_eq!(shown(&mut watch), ["head 1"]);
    let mut pending = fixture.append("a/b/c", None, &["two"]).unwrap();
    fixture
        .disk
        .fail_always(Fault::Broken, |call| call.kind == Call::SyncData);
    fixture.line.step();
    let outcome = done(&mut pending).unwrap();
    assert_eq!(outcome.unwrap_err().code(), ErrorCode::Unconfirmed);
    let refused = fixture.append("a/b/c", None, &["three"]).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert_eq!(shown(&mut watch), ["unavailable"]);
}

#[test]
fn message_is_found_by_its_id_once_durable() {
    let mut fixture = Fixture::new();
    let find = |fixture: &Fixture, id: &str| fixture.conversations().seq_of(&named("a/b/c"), id);
    assert_eq!(
        find(&fixture, "one").unwrap_err().code(),
        ErrorCode::NotFound
    );
    drop(fixture.append("a/b/c", None, &["one", "two"]).unwrap());
    let mut found = find(&fixture, "two").unwrap();
    assert_eq!(done(&mut found), None);
    fixture.line.step();
    assert_eq!(done(&mut found).unwrap(), Ok(2));
    let missing = ConversationError::NoMessage {
        id: "three".to_owned(),
    };
    let mut absent = find(&fixture, "three").unwrap();
    assert_eq!(done(&mut absent).unwrap(), Err(missing));
    // After a restart the ids of older messages are read from the disk.
    let ids: Vec<_> = (0..600).map(|it| format!("m{it}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    for ids in ids.chunks(200) {
        fixture.appended("a/b/c", ids);
    }
    let fixture = fixture.crash();
    for (id, seq) in [("one", 1), ("m0", 3), ("m599", 602)] {
        assert_eq!(done(&mut find(&fixture, id).unwrap()).unwrap(), Ok(seq));
    }
}
