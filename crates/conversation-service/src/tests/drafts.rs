//! Drafts.

use super::*;

/// An assembler whose message lists the bytes of the chunks.
pub(super) struct Joined;

impl Assemble for Joined {
    fn assemble(&self, _: &Limits, chunks: &mut dyn Iterator<Item = &[u8]>) -> Assembled {
        let chunks: Vec<_> = chunks.map(text).collect();
        Assembled {
            parts: chunks.join("+").into_bytes(),
            ..Assembled::default()
        }
    }
}

fn kept() -> Kept {
    let mut kept = Kept::streamed(Joined);
    kept.appended("a/b/c", &["question"]);
    kept
}

impl Kept {
    fn open(&self, id: &str) -> Result<Pending<DraftWriter>, ConversationError> {
        let new = NewDraft {
            id,
            role: "assistant",
            from: "bot",
            metadata: b"",
        };
        self.conversations().draft_open(&named("a/b/c"), new)
    }

    fn opened(&mut self, id: &str) -> DraftWriter {
        let mut pending = self.open(id).unwrap();
        self.line.step();
        done(&mut pending).unwrap().unwrap()
    }

    fn watch(&self, after: u64) -> Watch {
        self.conversations().watch(&named("a/b/c"), after).unwrap()
    }

    fn last(&self) -> (String, Status) {
        let page = Page {
            side: Side::Last,
            limit: 1,
            bytes: 1 << 20,
        };
        let read = self.conversations().read(&named("a/b/c"), page).unwrap();
        let message = read.messages().next().unwrap().unwrap();
        (text(message.view.parts), message.view.status)
    }
}

pub(super) fn push(writer: &mut DraftWriter, chunks: &[&str]) {
    for chunk in chunks {
        writer.push(chunk.as_bytes()).unwrap();
    }
}

pub(super) fn finish(writer: &mut DraftWriter, parts: &str, status: Status) -> Pending<Appended> {
    let assembled = Assembled {
        parts: parts.as_bytes().to_vec(),
        ..Assembled::default()
    };
    let finished = Finished {
        status,
        tokens: None,
        assembled: &assembled,
    };
    writer.finish(finished).unwrap()
}

#[test]
fn watchers_see_an_answer_while_it_is_streamed_and_then_its_message() {
    let mut kept = kept();
    let mut watch = kept.watch(0);
    assert_eq!(shown(&mut watch), ["1 question", "head 1"]);
    let mut pending = kept.open("answer").unwrap();
    // Nothing is shown before the opening is durable.
    assert_eq!(shown(&mut watch), Vec::<String>::new());
    kept.line.step();
    let mut writer = done(&mut pending).unwrap().unwrap();
    push(&mut writer, &["a", "b"]);
    assert_eq!(shown(&mut watch), ["answer.0 a", "answer.1 b"]);
    push(&mut writer, &["c"]);
    assert_eq!(shown(&mut watch), ["answer.2 c"]);
    // Another watcher resumes inside the answer.
    let position = watch.position().clone();
    assert_eq!(position.seq, 1);
    push(&mut writer, &["d"]);
    let conversations = kept.conversations();
    let mut late = conversations
        .watch_from(&named("a/b/c"), position.to_string().parse().unwrap())
        .unwrap();
    assert_eq!(shown(&mut late), ["head 1", "answer.3 d"]);
    assert_eq!(shown(&mut watch), ["answer.3 d"]);
    let mut finished = finish(&mut writer, "abcd", Status::Complete);
    assert_eq!(done(&mut finished), None);
    // The end is not returned before the message.
    assert_eq!(shown(&mut watch), Vec::<String>::new());
    kept.line.step();
    assert_eq!(done(&mut finished).unwrap().unwrap().last_seq, 2);
    assert_eq!(shown(&mut watch), ["2 abcd", "closed"]);
    assert_eq!(watch.position().to_string(), "2");
    assert_eq!(kept.last(), ("abcd".to_owned(), Status::Complete));
}

#[test]
fn an_author_who_leaves_has_what_came_kept_as_interrupted() {
    let mut kept = kept();
    let mut writer = kept.opened("answer");
    push(&mut writer, &["a", "b"]);
    drop(writer);
    kept.line.step();
    assert_eq!(kept.last(), ("a+b".to_owned(), Status::Interrupted));
    // A message has this id now.
    let mut again = kept.open("answer").unwrap();
    let refusal = done(&mut again).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::IdReused);
    assert_eq!(refusal.details().seq, Some(2));
}

#[test]
fn an_author_is_told_to_stop_and_watchers_see_it() {
    let mut kept = kept();
    let mut watch = kept.watch(1);
    let mut writer = kept.opened("answer");
    push(&mut writer, &["a"]);
    assert_eq!(shown(&mut watch), ["head 1", "answer.0 a"]);
    let mut context = Context::from_waker(Waker::noop());
    assert!(writer.poll_stopped(&mut context).is_pending());
    let stop = |id| kept.conversations().draft_stop(&named("a/b/c"), id);
    assert_eq!(stop("other").unwrap_err().code(), ErrorCode::NotFound);
    assert_eq!(stop("answer"), Ok(()));
    assert!(writer.poll_stopped(&mut context).is_ready());
    assert_eq!(shown(&mut watch), ["stop answer"]);
    drop(writer);
    kept.line.step();
    assert_eq!(kept.last(), ("a".to_owned(), Status::Stopped));
}

#[test]
fn that_an_answer_is_to_stop_is_told_before_its_end_however_soon_that_comes() {
    let mut kept = kept();
    let silent = kept.opened("silent");
    let mut writer = kept.opened("answer");
    push(&mut writer, &["a"]);
    let mut watch = kept.watch(1);
    assert_eq!(shown(&mut watch), ["head 1", "answer.0 a"]);
    let mut quick = kept.opened("quick");
    for id in ["silent", "answer", "quick"] {
        assert_eq!(kept.conversations().draft_stop(&named("a/b/c"), id), Ok(()));
    }
    // Everything happens before the watcher polls.
    push(&mut quick, &["b"]);
    drop((writer, silent, quick));
    kept.line.step();
    let told = shown(&mut watch);
    let stops: Vec<_> = told.iter().filter(|it| it.starts_with("stop")).collect();
    // Of a draft that opened and ended meanwhile, only the message is returned.
    assert_eq!(stops.len(), 2, "{told:?}");
    let place = |what: &str| told.iter().position(|it| it == what).unwrap();
    let closed = place("closed");
    assert!(
        place("stop answer") < closed && place("stop silent") < closed,
        "{told:?}"
    );
    assert_eq!(
        told.iter().filter(|it| *it == "closed").count(),
        2,
        "{told:?}"
    );
    assert_eq!(shown(&mut watch), Vec::<String>::new());
}

#[test]
fn what_was_streamed_a_quarter_of_a_second_ago_outlives_a_power_failure() {
    let mut kept = kept();
    let mut writer = kept.opened("answer");
    push(&mut writer, &["a", "b"]);
    kept.world.pass_ms(200);
    kept.line.step();
    push(&mut writer, &["lost, for it came just before"]);
    std::mem::forget(writer);
    let mut kept = kept.crash();
    assert_eq!(kept.conversations().drafts_recovered(), 1);
    kept.line.step();
    assert_eq!(kept.last(), ("a+b".to_owned(), Status::Interrupted));
    assert_eq!(kept.read("a/b/c", Side::After(0), 10).unwrap().len(), 2);
    // The draft is over, and stays so after every start.
    let kept = kept.crash();
    assert_eq!(kept.conversations().drafts_recovered(), 0);
    assert_eq!(kept.read("a/b/c", Side::After(0), 10).unwrap().len(), 2);
}

#[test]
fn drafts_are_bounded_in_number_and_size_and_their_ids_are_taken() {
    let mut kept = kept();
    let writers: Vec<_> = (0..8).map(|it| kept.opened(&it.to_string())).collect();
    let code = |id: &str| {
        let mut pending = kept.open(id).unwrap();
        done(&mut pending).unwrap().unwrap_err().code()
    };
    assert_eq!(code("too-many"), ErrorCode::Busy);
    assert_eq!(code("0"), ErrorCode::IdReused);
    let mut append = kept.append("a/b/c", None, &["0"]).unwrap();
    assert_eq!(
        done(&mut append).unwrap().unwrap_err().code(),
        ErrorCode::IdReused
    );
    drop(writers);
    let mut kept = self::kept();
    let mut writer = kept.opened("large");
    // A record of this journal has at most half a mebibyte.
    let chunk = vec![b'x'; 128 << 10];
    let taken = (0..8).map_while(|_| writer.push(&chunk).ok()).count();
    assert_eq!(taken, 3);
    assert_eq!(writer.push(&chunk).unwrap_err().code(), ErrorCode::TooLarge);
    assert_eq!(
        writer.push(b"a\nb").unwrap_err().code(),
        ErrorCode::InvalidArgument
    );
}

#[test]
fn erasing_a_conversation_ends_what_is_streamed_into_it() {
    let mut kept = kept();
    let mut writer = kept.opened("answer");
    push(&mut writer, &["a"]);
    kept.world.pass_ms(200);
    drop(kept.conversations().delete(&named("a/b/c")).unwrap());
    assert_eq!(writer.push(b"b").unwrap_err().code(), ErrorCode::Gone);
    let mut context = Context::from_waker(Waker::noop());
    assert!(writer.poll_stopped(&mut context).is_ready());
    drop(writer);
    kept.line.step();
    let kept = kept.crash();
    assert_eq!(kept.conversations().drafts_recovered(), 0);
    let read = kept.read("a/b/c", Side::Last, 1).unwrap_err();
    assert_eq!(read.code(), ErrorCode::Gone);
}

#[test]
fn the_log_of_drafts_is_trimmed_behind_the_oldest_that_is_open() {
    let mut kept = kept();
    for round in 0..50 {
        let mut writer = kept.opened(&format!("answer-{round}"));
        push(&mut writer, &["a", "b"]);
        kept.world.pass_ms(100);
        drop(finish(&mut writer, "ab", Status::Complete));
        kept.line.step();
    }
    let store = &kept.conversations().store;
    let left: u64 = (0..store.journal.shard_count())
        .filter_map(|shard| {
            let log = journal::StreamId(1 << 62);
            let state = store.journal.stream(journal::ShardId(shard), log)?;
            Some(state.next - state.start)
        })
        .sum();
    assert_eq!(left, 0);
}

#[test]
fn nothing_is_streamed_to_a_node_that_cannot_make_messages_of_it() {
    let kept = Kept::new();
    assert_eq!(
        kept.open("answer").unwrap_err().code(),
        ErrorCode::Unsupported
    );
}
