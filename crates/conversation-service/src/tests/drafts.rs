//! Drafts.

use super::*;

/// An assembler whose message lists the bytes of the chunks.
pub(super) struct ChunkAssembler;

impl Assemble for ChunkAssembler {
    fn assemble(&self, _: &Limits, chunks: &mut dyn Iterator<Item = &[u8]>) -> AssembledContent {
        let chunks: Vec<_> = chunks.map(text).collect();
        AssembledContent {
            parts: chunks.join("+").into_bytes(),
            ..AssembledContent::default()
        }
    }
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::streamed(ChunkAssembler);
    fixture.appended("a/b/c", &["question"]);
    fixture
}

impl Fixture {
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
    let assembled = AssembledContent {
        parts: parts.as_bytes().to_vec(),
        ..AssembledContent::default()
    };
    let finished = DraftResult {
        status,
        tokens: None,
        assembled: &assembled,
    };
    writer.finish(finished).unwrap()
}

#[test]
fn an_answer_that_has_ended_is_found_before_it_is_on_disk() {
    let mut fixture = fixture();
    let mut pending = fixture.open("answer").unwrap();
    fixture.line.step();
    let mut writer = done(&mut pending).unwrap().unwrap();
    push(&mut writer, &["a"]);
    let mut finished = finish(&mut writer, "a", Status::Complete);
    let mut found = fixture
        .conversations()
        .seq_of(&named("a/b/c"), "answer")
        .unwrap();
    assert!(done(&mut found).is_none(), "its sync is waited for");
    fixture.line.step();
    assert_eq!(done(&mut found).unwrap().unwrap(), 2);
    assert!(done(&mut finished).unwrap().is_ok());
}

#[test]
fn watchers_see_an_answer_while_it_is_streamed_and_then_its_message() {
    let mut fixture = fixture();
    let mut watch = fixture.watch(0);
    assert_eq!(shown(&mut watch), ["1 question", "head 1"]);
    let mut pending = fixture.open("answer").unwrap();
    // Nothing is shown before the opening is durable.
    assert_eq!(shown(&mut watch), Vec::<String>::new());
    fixture.line.step();
    let mut writer = done(&mut pending).unwrap().unwrap();
    push(&mut writer, &["a", "b"]);
    assert_eq!(shown(&mut watch), ["answer.0 a", "answer.1 b"]);
    push(&mut writer, &["c"]);
    assert_eq!(shown(&mut watch), ["answer.2 c"]);
    // Another watcher resumes inside the answer.
    let position = watch.position().clone();
    assert_eq!(position.seq, 1);
    push(&mut writer, &["d"]);
    let conversations = fixture.conversations();
    let mut late = conversations
        .watch_from(&named("a/b/c"), position.to_string().parse().unwrap())
        .unwrap();
    assert_eq!(shown(&mut late), ["head 1", "answer.3 d"]);
    assert_eq!(shown(&mut watch), ["answer.3 d"]);
    let mut finished = finish(&mut writer, "abcd", Status::Complete);
    assert_eq!(done(&mut finished), None);
    // The end is not returned before the message.
    assert_eq!(shown(&mut watch), Vec::<String>::new());
    fixture.line.step();
    assert_eq!(done(&mut finished).unwrap().unwrap().last_seq, 2);
    assert_eq!(shown(&mut watch), ["2 abcd", "closed"]);
    assert_eq!(watch.position().to_string(), "2");
    assert_eq!(fixture.last(), ("abcd".to_owned(), Status::Complete));
}

#[test]
fn draft_of_a_disconnected_author_is_stored_as_interrupted() {
    let mut fixture = fixture();
    let mut writer = fixture.opened("answer");
    push(&mut writer, &["a", "b"]);
    drop(writer);
    fixture.line.step();
    assert_eq!(fixture.last(), ("a+b".to_owned(), Status::Interrupted));
    // A message has this id now.
    let mut again = fixture.open("answer").unwrap();
    let refusal = done(&mut again).unwrap().unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::IdReused);
    assert_eq!(refusal.details().seq, Some(2));
}

#[test]
fn draft_stop_reaches_the_author_and_the_watchers() {
    let mut fixture = fixture();
    let mut watch = fixture.watch(1);
    let mut writer = fixture.opened("answer");
    push(&mut writer, &["a"]);
    assert_eq!(shown(&mut watch), ["head 1", "answer.0 a"]);
    let mut context = Context::from_waker(Waker::noop());
    assert!(writer.poll_stopped(&mut context).is_pending());
    let stop = |id| fixture.conversations().draft_stop(&named("a/b/c"), id);
    assert_eq!(stop("other").unwrap_err().code(), ErrorCode::NotFound);
    assert_eq!(stop("answer"), Ok(()));
    assert!(writer.poll_stopped(&mut context).is_ready());
    assert_eq!(shown(&mut watch), ["stop answer"]);
    drop(writer);
    fixture.line.step();
    assert_eq!(fixture.last(), ("a".to_owned(), Status::Stopped));
}

#[test]
fn watchers_receive_a_draft_stop_before_its_end() {
    let mut fixture = fixture();
    let silent = fixture.opened("silent");
    let mut writer = fixture.opened("answer");
    push(&mut writer, &["a"]);
    let mut watch = fixture.watch(1);
    assert_eq!(shown(&mut watch), ["head 1", "answer.0 a"]);
    let mut quick = fixture.opened("quick");
    for id in ["silent", "answer", "quick"] {
        assert_eq!(
            fixture.conversations().draft_stop(&named("a/b/c"), id),
            Ok(())
        );
    }
    // Everything happens before the watcher polls.
    push(&mut quick, &["b"]);
    drop((writer, silent, quick));
    fixture.line.step();
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
fn draft_chunks_older_than_250_ms_survive_power_failure() {
    let mut fixture = fixture();
    let mut writer = fixture.opened("answer");
    push(&mut writer, &["a", "b"]);
    fixture.world.pass_ms(200);
    fixture.line.step();
    push(&mut writer, &["lost, for it came just before"]);
    std::mem::forget(writer);
    let mut fixture = fixture.crash();
    assert_eq!(fixture.conversations().drafts_recovered(), 1);
    fixture.line.step();
    assert_eq!(fixture.last(), ("a+b".to_owned(), Status::Interrupted));
    assert_eq!(fixture.read("a/b/c", Side::After(0), 10).unwrap().len(), 2);
    // The draft is over, and stays so after every start.
    let fixture = fixture.crash();
    assert_eq!(fixture.conversations().drafts_recovered(), 0);
    assert_eq!(fixture.read("a/b/c", Side::After(0), 10).unwrap().len(), 2);
}

#[test]
fn draft_count_and_size_are_limited_and_ids_reserved() {
    let mut fixture = fixture();
    let writers: Vec<_> = (0..8).map(|it| fixture.opened(&it.to_string())).collect();
    let code = |id: &str| {
        let mut pending = fixture.open(id).unwrap();
        done(&mut pending).unwrap().unwrap_err().code()
    };
    assert_eq!(code("too-many"), ErrorCode::Busy);
    assert_eq!(code("0"), ErrorCode::IdReused);
    let mut append = fixture.append("a/b/c", None, &["0"]).unwrap();
    assert_eq!(
        done(&mut append).unwrap().unwrap_err().code(),
        ErrorCode::IdReused
    );
    drop(writers);
    let mut fixture = self::fixture();
    let mut writer = fixture.opened("large");
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
fn erasing_a_conversation_ends_its_open_drafts() {
    let mut fixture = fixture();
    let mut writer = fixture.opened("answer");
    push(&mut writer, &["a"]);
    fixture.world.pass_ms(200);
    drop(fixture.conversations().delete(&named("a/b/c")).unwrap());
    assert_eq!(writer.push(b"b").unwrap_err().code(), ErrorCode::Gone);
    let mut context = Context::from_waker(Waker::noop());
    assert!(writer.poll_stopped(&mut context).is_ready());
    drop(writer);
    fixture.line.step();
    let fixture = fixture.crash();
    assert_eq!(fixture.conversations().drafts_recovered(), 0);
    let read = fixture.read("a/b/c", Side::Last, 1).unwrap_err();
    assert_eq!(read.code(), ErrorCode::Gone);
}

#[test]
fn draft_log_is_trimmed_up_to_the_oldest_open_draft() {
    let mut fixture = fixture();
    for round in 0..50 {
        let mut writer = fixture.opened(&format!("answer-{round}"));
        push(&mut writer, &["a", "b"]);
        fixture.world.pass_ms(100);
        drop(finish(&mut writer, "ab", Status::Complete));
        fixture.line.step();
    }
    let store = &fixture.conversations().store;
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
fn draft_open_is_unsupported_without_an_assembler() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.open("answer").unwrap_err().code(),
        ErrorCode::Unsupported
    );
}
