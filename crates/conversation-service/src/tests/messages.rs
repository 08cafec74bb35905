//! Appending, reading and watching messages.

use conversations::record::{EventRef, EventTag};
use journal::ReadLimit;
use journal::disk::simulated::{Fault, Kind as Call};
use store::Kind;

use super::*;

#[test]
fn a_message_is_acknowledged_and_shown_once_it_is_on_disk() {
    let mut kept = Kept::new();
    let mut pending = kept.append("a/b/c", None, &["one", "two"]).unwrap();
    assert_eq!(done(&mut pending), None);
    assert_eq!(kept.read("a/b/c", Side::After(0), 10), Ok(Vec::new()));
    kept.line.step();
    let appended = done(&mut pending).unwrap().unwrap();
    assert_eq!((appended.first_seq, appended.last_seq), (1, 2));
    assert_eq!((appended.head_seq, appended.deduplicated), (2, 0));
    let read = kept.read("a/b/c", Side::After(0), 10).unwrap();
    assert_eq!(read, [(1, "one".to_owned()), (2, "two".to_owned())]);

    let kept = kept.crash();
    assert_eq!(kept.read("a/b/c", Side::After(0), 10), Ok(read));
}

#[test]
fn a_crash_before_the_sync_leaves_nothing_or_the_whole_batch_and_no_number_is_used_twice() {
    let mut kept = Kept::new();
    kept.appended("a/b/c", &["one"]);
    drop(kept.append("a/b/c", None, &["two", "three"]).unwrap());
    let mut kept = kept.crash();
    let left = kept.read("a/b/c", Side::After(0), 10).unwrap().len();
    assert!(left == 1 || left == 3, "{left}");
    // A retry returns the same message, whichever it was.
    let appended = kept.appended("a/b/c", &["two", "three"]);
    assert_eq!((appended.first_seq, appended.last_seq), (2, 3));
    assert_eq!(appended.deduplicated, left - 1);
}

#[test]
fn a_retry_is_answered_like_its_original_and_not_before_it() {
    let mut kept = Kept::new();
    let mut first = kept.append("a/b/c", Some(0), &["one", "two"]).unwrap();
    let mut again = kept.append("a/b/c", Some(0), &["one", "two"]).unwrap();
    assert_eq!((done(&mut first), done(&mut again)), (None, None));
    kept.line.step();
    let (first, again) = (done(&mut first).unwrap(), done(&mut again).unwrap());
    let (first, again) = (first.unwrap(), again.unwrap());
    assert_eq!(first.seqs().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(again.seqs().collect::<Vec<_>>(), [1, 2]);
    assert_eq!((first.deduplicated, again.deduplicated), (0, 2));
    assert_eq!(kept.read("a/b/c", Side::Last, 10).unwrap().len(), 2);

    // The same after a restart, when the id must be looked up.
    let mut kept = kept.crash();
    let again = kept.appended("a/b/c", &["two", "three"]);
    assert_eq!(again.seqs().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(again.deduplicated, 1);
}

#[test]
fn an_id_that_stands_for_something_else_is_refused_when_that_is_on_disk() {
    let mut kept = Kept::new();
    drop(kept.append("a/b/c", None, &["one"]).unwrap());
    let other = [message("zero", "zero"), message("one", "other")];
    let batch = Batch {
        expect: None,
        messages: &other,
    };
    let mut refused = kept.conversations().append(&named("a/b/c"), batch).unwrap();
    assert!(done(&mut refused).is_none());
    kept.line.step();
    let refusal = done(&mut refused).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::IdReused);
    assert_eq!(
        (refusal.details().index, refusal.details().seq),
        (Some(1), Some(1))
    );
    assert_eq!(kept.read("a/b/c", Side::Last, 10).unwrap().len(), 1);
}

#[test]
fn another_head_than_expected_is_told_once_that_head_is_on_disk() {
    let mut kept = Kept::new();
    drop(kept.append("a/b/c", Some(0), &["one"]).unwrap());
    let mut refused = kept.append("a/b/c", Some(0), &["two"]).unwrap();
    assert!(done(&mut refused).is_none());
    kept.line.step();
    let refusal = done(&mut refused).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Conflict);
    assert_eq!(refusal.details().head_seq, Some(1));
    let mut taken = kept.append("a/b/c", Some(1), &["two"]).unwrap();
    kept.line.step();
    assert_eq!(done(&mut taken).unwrap().unwrap().head_seq, 2);
}

#[test]
fn a_message_without_an_id_is_given_one_of_its_own() {
    let mut kept = Kept::new();
    let appended = kept.appended("a/b/c", &["", "named", ""]);
    let [one, other] = appended.made_ids() else {
        panic!("{appended:?}");
    };
    assert_ne!(one, other);
    let page = Page {
        side: Side::Last,
        limit: 10,
        bytes: 1 << 20,
    };
    let read = kept.conversations().read(&named("a/b/c"), page).unwrap();
    let ids: Vec<_> = read.messages().map(|it| it.unwrap().view.id).collect();
    assert_eq!(ids, [one, "named", other]);
}

#[test]
fn pages_go_both_ways_and_begin_at_the_end() {
    let mut kept = Kept::new();
    let ids: Vec<_> = (1..=100).map(|number| format!("m{number}")).collect();
    for ids in ids.chunks(7) {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        kept.appended("a/b/c", &ids);
    }
    let seqs = |side, limit| {
        let read = kept.read("a/b/c", side, limit).unwrap();
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
        let read = kept.conversations().read(&named("a/b/c"), page).unwrap();
        let seqs: Vec<_> = read.messages().map(|it| it.unwrap().seq).collect();
        assert_eq!(seqs.last(), Some(&100), "{seqs:?}");
        assert!(seqs.len() <= count, "{seqs:?}");
    }
}

#[test]
fn what_is_not_there_is_not_found_and_asking_leaves_nothing_behind() {
    let kept = Kept::new();
    let refusal = kept.read("a/b/c", Side::Last, 1).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::NotFound);
    let conversations = kept.conversations();
    let watch = conversations.watch(&named("a/b/c"), 0).unwrap_err();
    assert_eq!(watch.code(), ErrorCode::NotFound);
    let view = conversations.get(&named("a/b/c")).unwrap_err();
    assert_eq!(view.code(), ErrorCode::NotFound);
    assert_eq!(conversations.rooms.loaded_count(), 0);
}

#[test]
fn names_and_batches_that_are_none_are_refused_with_their_place() {
    let kept = Kept::new();
    let code = |name: &str, ids: &[&str]| kept.append(name, None, ids).unwrap_err().code();
    assert_eq!(code("telpher/a/b", &["x"]), ErrorCode::InvalidArgument);
    assert_eq!(code("a/b/c/d", &["x"]), ErrorCode::InvalidArgument);
    assert_eq!(code("a/b/c", &[]), ErrorCode::InvalidArgument);
    assert_eq!(code("a/b/c", &["x"; 257]), ErrorCode::TooLarge);
    let refusal = kept.append("a/b/c", None, &["x", "a b"]).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::InvalidArgument);
    assert_eq!(refusal.details().index, Some(1));
    let large = "x".repeat((1 << 20) + 1);
    let batch = Batch {
        expect: None,
        messages: &[message("x", &large)],
    };
    let refused = kept.conversations().append(&named("a/b/c"), batch);
    assert_eq!(refused.unwrap_err().code(), ErrorCode::TooLarge);
}

#[test]
fn every_message_has_an_event_that_leads_back_to_it() {
    let mut kept = Kept::new();
    for round in 0..5 {
        for name in ["a/b/c", "a/b/d", "a/other/e"] {
            kept.appended(name, &[&format!("{round}"), &format!("{round}x")]);
        }
    }
    let store = &kept.conversations().store;
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
fn a_watcher_is_shown_what_is_there_and_then_what_comes_without_gap_or_repetition() {
    let mut kept = Kept::new();
    kept.appended("a/b/c", &["one", "two"]);
    let mut watch = kept.conversations().watch(&named("a/b/c"), 0).unwrap();
    let mut late = kept.conversations().watch(&named("a/b/c"), 2).unwrap();
    assert_eq!(shown(&mut watch), ["1 one", "2 two", "head 2"]);
    assert_eq!(shown(&mut late), ["head 2"]);
    drop(kept.append("a/b/c", None, &["three"]).unwrap());
    assert_eq!(shown(&mut watch), Vec::<String>::new());
    kept.line.step();
    assert_eq!(shown(&mut watch), ["3 three"]);
    for number in 4..=200 {
        drop(
            kept.append("a/b/c", None, &[&format!("m{number}")])
                .unwrap(),
        );
    }
    kept.line.step();
    let new: Vec<_> = (4..=200)
        .map(|number| format!("{number} m{number}"))
        .collect();
    assert_eq!(shown(&mut watch), new);
    assert_eq!(shown(&mut late).len(), 198);
    let beyond = kept.conversations().watch(&named("a/b/c"), 201);
    assert_eq!(beyond.unwrap_err().details().head_seq, Some(200));
}

#[test]
fn watchers_are_counted_and_bounded() {
    let mut kept = Kept::with(Options {
        watchers_max: 2,
        ..Options::default()
    });
    kept.appended("a/b/c", &["one"]);
    let watch = |kept: &Kept| kept.conversations().watch(&named("a/b/c"), 0);
    let (one, _other) = (watch(&kept).unwrap(), watch(&kept).unwrap());
    assert_eq!(watch(&kept).unwrap_err().code(), ErrorCode::Busy);
    drop(one);
    assert!(watch(&kept).is_ok());
}

#[test]
fn a_conversation_that_nobody_uses_is_let_go_and_one_that_is_watched_stays() {
    let mut kept = Kept::new();
    kept.appended("a/b/c", &["one"]);
    kept.appended("a/b/d", &["one"]);
    let watch = kept.conversations().watch(&named("a/b/d"), 0).unwrap();
    assert_eq!(kept.conversations().rooms.loaded_count(), 2);
    kept.world.pass_ms(15_000);
    assert_eq!(kept.conversations().rooms.loaded_count(), 1);
    drop(watch);
    kept.world.pass_ms(15_000);
    assert_eq!(kept.conversations().rooms.loaded_count(), 0);
    let again = kept.appended("a/b/c", &["one", "two"]);
    assert_eq!((again.deduplicated, again.head_seq), (1, 2));
}

#[test]
fn when_the_disk_fails_whoever_waits_learns_that_nothing_is_known() {
    let mut kept = Kept::new();
    kept.appended("a/b/c", &["one"]);
    let mut watch = kept.conversations().watch(&named("a/b/c"), 1).unwrap();
    assert_eq!(shown(&mut watch), ["head 1"]);
    let mut pending = kept.append("a/b/c", None, &["two"]).unwrap();
    kept.disk
        .fail_always(Fault::Broken, |call| call.kind == Call::SyncData);
    kept.line.step();
    let outcome = done(&mut pending).unwrap();
    assert_eq!(outcome.unwrap_err().code(), ErrorCode::Unconfirmed);
    let refused = kept.append("a/b/c", None, &["three"]).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert_eq!(shown(&mut watch), ["unavailable"]);
}
