//! Retractions of the newest messages.

use super::drafts::{ChunkAssembler, finish, push};
use super::*;

const NAME: &str = "a/b/c";

fn request(id: &str, expect: u64, count: u64) -> RetractRequest<'_> {
    RetractRequest {
        id: Some(id),
        expect,
        extent: RetractExtent::Newest(count),
    }
}

impl Fixture {
    fn retract(&self, request: RetractRequest<'_>) -> Pending<RetractOutcome> {
        self.conversations().retract(&named(NAME), request).unwrap()
    }

    fn retracted(
        &mut self,
        request: RetractRequest<'_>,
    ) -> Result<RetractOutcome, ConversationError> {
        let mut pending = self.conversations().retract(&named(NAME), request)?;
        self.line.step();
        done(&mut pending).unwrap()
    }

    fn seqs(&self, name: &str) -> Vec<u64> {
        let read = self.read(name, Side::After(0), 100).unwrap();
        read.into_iter().map(|(seq, _)| seq).collect()
    }

    fn window(&self) -> Vec<u64> {
        let policy = Policy {
            budget: 10_000,
            ..Policy::default()
        };
        let context = self.conversations().context(&named(NAME), Some(&policy));
        let read = done(&mut context.unwrap()).unwrap().unwrap();
        read.messages().map(|it| it.unwrap().message.seq).collect()
    }

    fn watch_after(&self, after: u64) -> Watch {
        self.conversations().watch(&named(NAME), after).unwrap()
    }
}

#[test]
fn retracted_messages_are_left_out_of_reads_and_windows() {
    let mut fixture = Fixture::new();
    fixture.appended(NAME, &["one", "two", "three"]);
    let outcome = fixture.retracted(request("r-1", 3, 2)).unwrap();
    let range = SeqRange { first: 2, last: 4 };
    assert_eq!((outcome.range, outcome.count), (Some(range), 2));
    assert_eq!(outcome.head_seq, 4);
    let appended = fixture.appended(NAME, &["four"]);
    assert_eq!(appended.first_seq, 5);
    for round in 0..2 {
        assert_eq!(fixture.seqs(NAME), [1, 5]);
        let read = |side, limit| {
            let read = fixture.read(NAME, side, limit).unwrap();
            read.into_iter().map(|(seq, _)| seq).collect::<Vec<_>>()
        };
        assert_eq!(read(Side::After(2), 10), [5]);
        assert_eq!(read(Side::After(0), 1), [1]);
        assert_eq!(read(Side::Last, 1), [5]);
        assert_eq!(read(Side::Last, 2), [1, 5]);
        assert_eq!(read(Side::Before(5), 2), [1]);
        assert_eq!(fixture.window(), [1, 5]);
        let found = |id| {
            let pending = fixture.conversations().seq_of(&named(NAME), id);
            done(&mut pending.unwrap()).unwrap()
        };
        assert_eq!(found("four"), Ok(5));
        for id in ["two", "three", "r-1"] {
            assert_eq!(found(id).unwrap_err().code(), ErrorCode::NotFound);
        }
        if round == 0 {
            fixture = fixture.crash();
        }
    }
}

#[test]
fn page_of_a_client_continues_after_retracted_messages() {
    let mut fixture = Fixture::new();
    fixture.appended(NAME, &["one", "two", "three"]);
    fixture.retracted(request("r-1", 3, 1)).unwrap();
    fixture.appended(NAME, &["four", "five"]);
    let read = |after| {
        let range = MessageRange {
            after,
            messages_max: 10,
            bytes_max: 1 << 20,
        };
        let page = fixture.conversations().read_after(&named(NAME), range);
        let page = done(&mut page.unwrap()).unwrap().unwrap();
        let seqs: Vec<_> = page.messages().map(|it| it.unwrap().seq).collect();
        (seqs, page.start_seq, page.head_seq)
    };
    assert_eq!(read(0), (vec![1, 2], 1, 6));
    assert_eq!(read(2), (vec![5, 6], 1, 6));
    assert_eq!(read(3), (vec![5, 6], 1, 6));
    assert_eq!(read(6), (vec![], 1, 6));
}

#[test]
fn retraction_is_shown_once_it_is_durable() {
    let mut fixture = Fixture::new();
    fixture.appended(NAME, &["one", "two"]);
    let mut ahead = fixture.watch_after(2);
    assert_eq!(shown(&mut ahead), ["head 2"]);
    let mut pending = fixture.retract(request("r-1", 2, 1));
    assert!(done(&mut pending).is_none());
    assert_eq!(fixture.seqs(NAME), [1, 2]);
    assert_eq!(shown(&mut ahead), Vec::<String>::new());
    let mut later = fixture.retract(request("r-2", 3, 1));
    assert_eq!(fixture.seqs(NAME), [1, 2]);
    fixture.line.step();
    assert!(done(&mut pending).is_some() && done(&mut later).is_some());
    assert_eq!(fixture.seqs(NAME), Vec::<u64>::new());
    assert_eq!(fixture.window(), Vec::<u64>::new());
    assert_eq!(shown(&mut ahead), ["retracted 1 to 4"]);
}

#[test]
fn watchers_at_any_position_are_told_of_a_retraction() {
    let mut fixture = Fixture::new();
    fixture.appended(NAME, &["one", "two", "three"]);
    let mut ahead = fixture.watch_after(3);
    let mut behind = fixture.watch_after(1);
    assert_eq!(shown(&mut ahead), ["head 3"]);
    fixture.retracted(request("r-1", 3, 2)).unwrap();
    assert_eq!(shown(&mut ahead), ["retracted 2 to 4"]);
    assert_eq!(ahead.position().to_string(), "4");
    assert_eq!(shown(&mut behind), ["retracted 2 to 4", "head 4"]);
    fixture.appended(NAME, &["four"]);
    assert_eq!(shown(&mut ahead), ["5 four"]);
    // A watcher that was away when messages that it had seen were retracted.
    for after in [1, 2, 3] {
        let mut away = fixture.watch_after(after);
        assert_eq!(shown(&mut away), ["retracted 2 to 4", "5 four", "head 5"]);
    }
    let mut knows = fixture.watch_after(4);
    assert_eq!(shown(&mut knows), ["5 four", "head 5"]);
    let mut first = fixture.watch_after(0);
    let all = ["1 one", "retracted 2 to 4", "5 four", "head 5"];
    assert_eq!(shown(&mut first), all);
    fixture.retracted(request("r-2", 5, 2)).unwrap();
    assert_eq!(shown(&mut first), ["retracted 1 to 6"]);
}

#[test]
fn follower_over_a_connection_is_told_of_a_retraction() {
    let mut fixture = Fixture::new();
    fixture.appended(NAME, &["one", "two"]);
    let range = MessageRange {
        after: 2,
        messages_max: 10,
        bytes_max: 1 << 20,
    };
    let conversation = ConversationRef::new(named(NAME));
    let mut follower = MessageFollower::new(fixture.conversations(), &conversation, range);
    assert!(follower.poll_next(Waker::noop()).is_pending());
    fixture.retracted(request("r-1", 2, 1)).unwrap();
    let Poll::Ready(Ok(page)) = follower.poll_next(Waker::noop()) else {
        panic!("there is a page");
    };
    assert_eq!((page.messages().len(), page.head_seq), (0, 3));
    assert!(follower.poll_next(Waker::noop()).is_pending());
    fixture.appended(NAME, &["three"]);
    let Poll::Ready(Ok(page)) = follower.poll_next(Waker::noop()) else {
        panic!("there is a page");
    };
    assert_eq!(page.last_seq(), Some(4));
}

#[test]
fn repeated_retraction_succeeds_and_another_writer_is_refused() {
    let mut fixture = Fixture::new();
    fixture.appended(NAME, &["one", "two"]);
    let first = fixture.retracted(request("r-1", 2, 1)).unwrap();
    assert_eq!(fixture.retracted(request("r-1", 2, 1)), Ok(first));
    let refused = fixture.retracted(request("r-2", 2, 1)).unwrap_err();
    let details = (refused.code(), refused.details().head_seq);
    assert_eq!(details, (ErrorCode::Conflict, Some(3)));
    let append = fixture.append(NAME, Some(2), &["three"]).unwrap();
    let refused = done(&mut { append }).unwrap().unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    let mut again = fixture.append(NAME, None, &["two"]).unwrap();
    let refused = done(&mut again).unwrap().unwrap_err();
    let details = (refused.code(), refused.details().seq);
    assert_eq!(details, (ErrorCode::IdReused, Some(2)));
    let nothing = fixture.retracted(request("r-3", 3, 9)).unwrap();
    assert_eq!((nothing.count, nothing.head_seq), (1, 4));
    let nothing = fixture.retracted(request("r-4", 4, 1)).unwrap();
    assert_eq!((nothing.range, nothing.head_seq), (None, 4));
    let missing = fixture
        .conversations()
        .retract(&named("a/b/none"), request("r-1", 0, 1));
    assert_eq!(missing.unwrap_err().code(), ErrorCode::NotFound);
}

#[test]
fn crash_during_a_retraction_leaves_all_messages_or_none() {
    let mut outcomes = [0, 0];
    for seed in 0..40 {
        let mut fixture = Fixture::new();
        fixture.starts = seed;
        fixture.appended(NAME, &["one", "two", "three"]);
        drop(fixture.retract(request("r-1", 3, 2)));
        let mut fixture = fixture.crash();
        let is_retracted = fixture.seqs(NAME) == [1];
        outcomes[usize::from(is_retracted)] += 1;
        if !is_retracted {
            assert_eq!(fixture.seqs(NAME), [1, 2, 3]);
        }
        let outcome = fixture.retracted(request("r-1", 3, 2)).unwrap();
        assert_eq!((outcome.count, outcome.head_seq), (2, 4));
        let fixture = fixture.crash();
        assert_eq!(fixture.seqs(NAME), [1]);
    }
    assert!(outcomes[0] > 0, "{outcomes:?}");
}

#[test]
fn open_draft_becomes_a_message_after_the_retraction() {
    let mut fixture = Fixture::streamed(ChunkAssembler);
    fixture.appended(NAME, &["one", "two"]);
    let new = NewDraft {
        id: "answer",
        role: "assistant",
        from: "bot",
        metadata: b"",
    };
    let open = |fixture: &Fixture, id| {
        let new = NewDraft { id, ..new };
        fixture
            .conversations()
            .draft_open(&named(NAME), new)
            .unwrap()
    };
    let mut opening = open(&fixture, "answer");
    fixture.line.step();
    let mut writer = done(&mut opening).unwrap().unwrap();
    push(&mut writer, &["hello"]);
    let mut watch = fixture.watch_after(2);
    assert_eq!(shown(&mut watch), ["head 2", "answer.0 hello"]);
    fixture.retracted(request("r-1", 2, 1)).unwrap();
    assert_eq!(shown(&mut watch), ["retracted 2 to 3"]);
    let mut finished = finish(&mut writer, "hello", Status::Complete);
    fixture.line.step();
    done(&mut finished).unwrap().unwrap();
    assert_eq!(shown(&mut watch), ["4 hello", "closed"]);
    assert_eq!(fixture.seqs(NAME), [1, 4]);
    let refused = done(&mut open(&fixture, "two")).unwrap().map(|_| ());
    assert_eq!(refused.unwrap_err().code(), ErrorCode::IdReused);
}

#[test]
fn fork_has_what_was_not_retracted_with_the_same_numbers() {
    let mut fixture = Fixture::new();
    fixture.appended(NAME, &["one", "two", "three"]);
    fixture.retracted(request("r-1", 3, 2)).unwrap();
    fixture.appended(NAME, &["four", "five"]);
    for (at_seq, expected) in [
        (6, vec![1, 5, 6]),
        (5, vec![1, 5]),
        (4, vec![1]),
        (3, vec![1]),
    ] {
        let copy = format!("a/b/at-{at_seq}");
        let forked = fixture
            .conversations()
            .fork(&named(NAME), &named(&copy), at_seq);
        fixture.line.step();
        let forked = done(&mut forked.unwrap()).unwrap().unwrap();
        assert_eq!(forked.view.head_seq, at_seq);
        assert_eq!(fixture.seqs(&copy), expected);
        let appended = fixture.appended(&copy, &["two"]);
        assert_eq!((appended.first_seq, appended.deduplicated), (at_seq + 1, 0));
        let mut watch = fixture.conversations().watch(&named(&copy), 0).unwrap();
        let told = shown(&mut watch);
        let last = at_seq.min(4);
        assert_eq!(
            told[..2],
            ["1 one".to_owned(), format!("retracted 2 to {last}")]
        );
    }
    let mut fixture = fixture.crash();
    fixture.line.step();
    assert_eq!(fixture.seqs("a/b/at-4"), [1, 5]);
}

#[test]
fn keep_last_does_not_count_retracted_messages() {
    let mut fixture = Fixture::new();
    let change = Change::Put {
        metadata: None,
        settings: Some(Settings {
            keep_last: 10,
            ..Settings::default()
        }),
        is_archived: None,
    };
    let changed = fixture.conversations().change(&named(NAME), None, &change);
    drop(changed.unwrap());
    for number in 1..=20 {
        fixture.appended(NAME, &[&number.to_string()]);
    }
    fixture.retracted(request("r-1", 20, 5)).unwrap();
    fixture.world.pass_ms(2_000);
    fixture.line.step();
    let kept = fixture.read(NAME, Side::Last, 100).unwrap().into_iter();
    let kept: Vec<_> = kept.map(|(seq, _)| seq).collect();
    assert_eq!(kept, (6..=15).collect::<Vec<_>>());
    let view = fixture.conversations().get(&named(NAME)).unwrap();
    let view = done(&mut { view }).unwrap().unwrap();
    assert_eq!((view.start_seq, view.head_seq), (6, 21));
    fixture.retracted(request("r-2", 21, 100)).unwrap();
    let view = fixture.conversations().get(&named(NAME)).unwrap();
    let view = done(&mut { view }).unwrap().unwrap();
    assert_eq!((view.start_seq, view.head_seq), (23, 22));
}

#[test]
fn agent_does_not_answer_retracted_messages() {
    let mut fixture = Fixture::new();
    let change = Change::Put {
        metadata: None,
        settings: Some(Settings {
            agent: "bot".to_owned(),
            ..Settings::default()
        }),
        is_archived: None,
    };
    let changed = fixture.conversations().change(&named(NAME), None, &change);
    drop(changed.unwrap());
    fixture.appended(NAME, &["one", "two"]);
    let due = |fixture: &Fixture| {
        let location = fixture.world.store.find(store::Kind::Conversation, NAME);
        let turn = fixture
            .conversations()
            .look(location.unwrap().stream, &|_| 0)
            .unwrap();
        turn.unwrap().due
    };
    assert_eq!(due(&fixture), Some((1, 2)));
    fixture.retracted(request("r-1", 2, 1)).unwrap();
    assert_eq!(due(&fixture), Some((1, 1)));
    fixture.retracted(request("r-2", 3, 1)).unwrap();
    assert_eq!(due(&fixture), None);
    fixture.appended(NAME, &["three"]);
    assert_eq!(due(&fixture), Some((5, 5)));
}
