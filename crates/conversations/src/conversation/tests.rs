use std::fmt::Write as _;

use super::*;
use crate::decision::{MessageSeq, Plan};
use crate::message::Status;
use crate::retracted::SeqRange;
use crate::state::{Origin, Settings, Summary};

mod properties;
mod retract;

/// A conversation and its streams.
struct World {
    conversation: Conversation,
    /// The messages as stored; the first ones may be trimmed.
    messages: Vec<Vec<u8>>,
    /// The snapshots and changes: whether it is a snapshot, and its bytes.
    states: Vec<(bool, Vec<u8>)>,
    /// The messages that are at hand without a request.
    at_hand: u64,
    reads: usize,
    learned: usize,
    limits: Limits,
}

impl World {
    fn new() -> Self {
        Self {
            conversation: Conversation::load(State::default(), 0, 0, None),
            messages: Vec::new(),
            states: Vec::new(),
            at_hand: 0,
            reads: 0,
            learned: 0,
            limits: Limits {
                cursors_max: 2,
                drafts_max: 2,
                ..Limits::default()
            },
        }
    }

    /// Executes decisions, performing the reads that they request.
    fn append(&mut self, expect: Option<u64>, batch: &[NewMessage<'_>]) -> Result<Plan, Refusal> {
        let mut fetched = Vec::new();
        loop {
            let stored = |seq: u64| {
                let is_there = seq >= self.at_hand || fetched.contains(&seq);
                is_there.then(|| &self.messages[seq as usize - 1])
            };
            match self.conversation.decide(expect, batch, stored)? {
                Decision::Append(plan) => {
                    for (place, message) in plan.places.iter().zip(batch) {
                        let MessageSeq::New(seq) = place else {
                            continue;
                        };
                        self.keep(*seq, message);
                    }
                    assert_eq!(self.conversation.head(), plan.head);
                    return Ok(plan);
                }
                Decision::Read(seqs) => {
                    assert!(!seqs.iter().any(|seq| fetched.contains(seq)), "asked twice");
                    self.reads += seqs.len();
                    fetched.extend(seqs);
                }
                Decision::Learn(seqs) => self.learn(seqs),
            }
        }
    }

    fn keep(&mut self, seq: u64, message: &NewMessage<'_>) {
        let made = format!("made-{seq}");
        let id = message.id.unwrap_or(&made);
        let mut record = Vec::new();
        let links = self.conversation.links(0);
        message.encode(id, Status::Complete, links, &mut record);
        self.messages.push(record);
        assert_eq!(self.messages.len() as u64, seq);
        let (tokens, _) = message.tokens();
        self.conversation.appended(id, message.role, tokens);
    }

    /// Passes ids in two pieces, the later one first.
    fn learn(&mut self, seqs: std::ops::Range<u64>) {
        let middle = seqs.start + (seqs.end - seqs.start) / 2;
        self.learned += (seqs.end - seqs.start) as usize;
        for piece in [middle..seqs.end, seqs.start..middle] {
            let hash = |seq: u64| id_hash(view(&self.messages, seq).id);
            let hashes: Vec<_> = piece.clone().map(hash).collect();
            let is_new = self.conversation.learn(piece.start, &hashes);
            assert_eq!(is_new, !piece.is_empty(), "{piece:?}");
        }
    }

    fn change(&mut self, expect: Option<u64>, change: &Change) -> Result<&'static str, Refusal> {
        let update = self
            .conversation
            .decide_change(expect, change, &self.limits, 7)?;
        let what = match &update {
            Update::Nothing => "nothing",
            Update::Change { bytes, .. } => {
                self.states.push((false, bytes.clone()));
                "change"
            }
            Update::Snapshot { bytes, .. } => {
                self.states.clear();
                self.states.push((true, bytes.clone()));
                "snapshot"
            }
        };
        self.conversation.changed(update);
        Ok(what)
    }

    /// Executes a retraction, performing the reads that it requests. Returns the number of the
    /// retraction with the first retracted message; `None` if there was nothing to retract.
    fn retract(
        &mut self,
        id: &str,
        expect: u64,
        extent: RetractExtent,
    ) -> Result<Option<(u64, u64)>, Refusal> {
        let mut fetched = Vec::new();
        loop {
            let stored = |seq: u64| {
                let is_there = seq >= self.at_hand || fetched.contains(&seq);
                is_there.then(|| &self.messages[seq as usize - 1])
            };
            let retract = Retract {
                id,
                expect,
                extent,
                floor: self.conversation.start(),
            };
            match self.conversation.decide_retract(&retract, stored)? {
                RetractDecision::Retract(plan) => {
                    let done = (plan.seq, plan.retraction.first_seq);
                    let mut record = Vec::new();
                    let view = MessageView {
                        links: plan.links(0),
                        ..MessageView::of_retraction(id, plan.retraction)
                    };
                    view.encode(&mut record);
                    self.messages.push(record);
                    self.states = vec![(true, plan.snapshot().to_vec())];
                    self.conversation.retracted(id, plan);
                    return Ok(Some(done));
                }
                RetractDecision::Known { seq, retraction } => {
                    return Ok(Some((seq, retraction.first_seq)));
                }
                RetractDecision::Nothing => return Ok(None),
                RetractDecision::Read(seqs) => {
                    assert!(!seqs.iter().any(|seq| fetched.contains(seq)), "asked twice");
                    fetched.extend(seqs);
                }
                RetractDecision::Learn(seqs) => self.learn(seqs),
            }
        }
    }

    /// Loads the conversation again, from its streams.
    fn restart(&mut self) {
        let before = self.conversation.state.clone();
        let start = self.conversation.start();
        let head = self.messages.len() as u64;
        let mut states = self.states.iter();
        let state = match self.states.first() {
            Some((true, bytes)) => {
                states.next();
                State::decode(bytes).unwrap()
            }
            _ => State::default(),
        };
        let newest = (start <= head && head > 0).then(|| view(&self.messages, head));
        let mut loaded = Conversation::load(state, start - 1, head, newest.as_ref());
        for (_, bytes) in states {
            loaded.restore_change(&StateChange::decode(bytes).unwrap());
        }
        assert_eq!(loaded.state, before);
        assert_eq!((loaded.start(), loaded.head()), (start, head));
        if newest.is_some() {
            assert_eq!(loaded.links(0), self.conversation.links(0));
        }
        self.conversation = loaded;
    }
}

fn view(messages: &[Vec<u8>], seq: u64) -> MessageView<'_> {
    MessageView::decode(&messages[seq as usize - 1]).unwrap()
}

fn message<'a>(id: Option<&'a str>, text: &'a str) -> NewMessage<'a> {
    NewMessage {
        id,
        role: "user",
        from: "",
        tokens: Some(10),
        facts: &[],
        parts: text.as_bytes(),
        metadata: b"",
    }
}

/// Runs a script against a conversation that does not exist yet, and compares the transcript.
///
/// | line | does |
/// |---|---|
/// | `append [at=HEAD] ID:TEXT…` | a batch; `-` for an id that the node makes |
/// | `stream ID` · `end ID TEXT` | a draft |
/// | `put [at=VERSION] [TEXT]` · `archive` · `reopen` · `erase` · `copy` · `copied` | |
/// | `cursor WHO SEQ` · `summarize SEQ` | |
/// | `trim SEQ` | the first retained message from now on |
/// | `cold SEQ` | earlier messages are not at hand |
/// | `restart` · `forget` | |
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut world = World::new();
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let at = words.get(1).and_then(|it| it.strip_prefix("at="));
        let expect = at.map(|it| it.parse().unwrap());
        let rest = &words[if at.is_some() { 2 } else { 1 }..];
        let change = match words[0] {
            "append" => {
                let batch = rest.iter().map(|it| it.split_once(':').unwrap());
                let batch: Vec<_> = batch
                    .map(|(id, text)| message((id != "-").then_some(id), text))
                    .collect();
                transcribe(world.append(expect, &batch), &mut out);
                continue;
            }
            "stream" => {
                let stored = |seq: u64| Some(&world.messages[seq as usize - 1]);
                match world
                    .conversation
                    .decide_open(words[1], &world.limits, stored)
                {
                    Ok(Lookup::Nowhere) => world.conversation.draft_opened(words[1]),
                    found => writeln!(out, "{found:?}").unwrap(),
                }
                continue;
            }
            "end" => {
                let message = message(Some(words[1]), words[2]);
                let stored = |seq: u64| Some(&world.messages[seq as usize - 1]);
                let decision = world.conversation.decide_draft(&message, stored);
                let Ok(Decision::Append(plan)) = decision else {
                    writeln!(out, "{decision:?}").unwrap();
                    continue;
                };
                world.keep(plan.head, &message);
                world.conversation.draft_closed(words[1]);
                transcribe(Ok(plan), &mut out);
                continue;
            }
            "trim" => {
                world.conversation.trimmed(number(1));
                continue;
            }
            "cold" => {
                world.at_hand = number(1);
                continue;
            }
            "restart" => {
                world.restart();
                continue;
            }
            "forget" => {
                world.conversation.forget_older_ids();
                continue;
            }
            "cursor" => Change::Cursor {
                who: words[1].to_owned(),
                seq: number(2),
            },
            "put" => Change::Put {
                metadata: rest.first().map(|it| it.as_bytes().to_vec()),
                settings: None,
                is_archived: None,
            },
            "archive" | "reopen" => Change::Put {
                metadata: None,
                settings: None,
                is_archived: Some(words[0] == "archive"),
            },
            "summarize" => Change::Summarize(Some(Summary {
                through_seq: number(1),
                tokens: 3,
                is_estimated: false,
                message: b"summary".to_vec(),
            })),
            "copy" => Change::Copy {
                origin: Origin {
                    conversation: "a/b/c".to_owned(),
                    seq: 3,
                },
                metadata: b"{}".to_vec(),
                settings: Settings::default(),
            },
            "copied" => Change::Copied {
                retracted: Retracted::default(),
            },
            "erase" => Change::Erase,
            other => panic!("{other}?"),
        };
        match world.change(expect, &change) {
            Ok(what) => writeln!(out, "{what}").unwrap(),
            Err(refusal) => writeln!(out, "{refusal}").unwrap(),
        }
    }
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&out), lines(expected), "{out}");
}

fn transcribe(result: Result<Plan, Refusal>, out: &mut String) {
    match result {
        Ok(plan) => {
            for place in plan.places {
                match place {
                    MessageSeq::New(seq) => write!(out, "{seq} ").unwrap(),
                    MessageSeq::Known(seq) => write!(out, "({seq}) ").unwrap(),
                }
            }
            writeln!(out, "head {}", plan.head).unwrap();
        }
        Err(refusal) => writeln!(out, "{refusal}").unwrap(),
    }
}

#[test]
fn messages_are_numbered_from_one() {
    check(
        "append a:1 -:2
         append b:3
         restart
         append -:4",
        "1 2 head 2
         3 head 3
         4 head 4",
    );
}

#[test]
fn a_retried_append_gets_its_first_sequence_despite_an_expected_head() {
    check(
        "append at=0 a:1
         append at=0 a:1
         append b:2
         restart
         append at=0 a:1
         append at=9 b:2 a:1",
        "1 head 1
         (1) head 1
         2 head 2
         (1) head 2
         (2) (1) head 2",
    );
}

#[test]
fn a_batch_appends_only_messages_that_are_not_duplicates() {
    check(
        "append a:1
         append b:2 a:1 c:3
         append c:3 d:4 d:4",
        "1 head 1
         2 (1) 3 head 3
         (3) 4 (4) head 4",
    );
}

#[test]
fn an_id_is_never_reused_for_other_content() {
    check(
        "append a:1
         append b:2 a:2
         append c:3 c:4
         append b:2",
        "1 head 1
         message 1 has the id of message 1 but different content
         message 1 has the id of message 0 of the batch but different content
         2 head 2",
    );
}

#[test]
fn an_unexpected_head_appends_nothing() {
    check(
        "append at=1 a:1
         append at=0 a:1 b:2
         append at=0 c:3
         append at=0 a:1 c:3
         append at=2 c:3",
        "the newest message is 0, not 1
         1 2 head 2
         the newest message is 2, not 0
         the newest message is 2, not 0
         3 head 3",
    );
}

#[test]
fn missing_records_are_requested() {
    check(
        "append a:1 b:2 c:3
         cold 4
         append b:2 d:4 a:1
         append a:9",
        "1 2 3 head 3
         (2) 4 (1) head 4
         message 0 has the id of message 1 but different content",
    );
}

#[test]
fn a_trimmed_message_is_forgotten_with_its_id() {
    check(
        "append a:1 b:2 c:3
         trim 3
         append c:3 a:1
         restart
         append a:1 b:9
         trim 6
         restart
         append d:6",
        "1 2 3 head 3
         (3) 4 head 4
         (4) 5 head 5
         6 head 6",
    );
}

#[test]
fn an_archived_conversation_is_read_only_but_for_retries_and_open_drafts() {
    check(
        "append a:1
         stream d
         archive
         archive
         append b:2
         append a:1
         stream e
         end d 2
         reopen
         append b:2",
        "1 head 1
         snapshot
         nothing
         the conversation is archived
         (1) head 1
         Err(Archived)
         2 head 2
         snapshot
         3 head 3",
    );
}

#[test]
fn the_id_of_an_open_draft_belongs_to_it() {
    check(
        "stream d
         stream d
         append a:1 d:2
         stream e
         stream f
         end d 1
         stream f
         stream d
         append d:1 -:2",
        "Err(IdStreamed { index: 0 })
         message 1 has the id of an open draft
         Err(Drafts { max: 2 })
         1 head 1
         Ok(At(1))
         (1) 2 head 2",
    );
}

#[test]
fn an_erased_conversation_stays_erased() {
    check(
        "erase
         append a:1
         put x
         erase
         append a:1
         append b:2
         stream d
         put y
         erase
         restart
         append a:1",
        "the conversation does not exist
         1 head 1
         snapshot
         snapshot
         the conversation was erased
         the conversation was erased
         Err(Gone)
         the conversation was erased
         the conversation was erased
         the conversation was erased",
    );
}

#[test]
fn a_copy_refuses_changes_until_it_is_complete() {
    check(
        "copy
         copy
         append a:1
         put x
         cursor alice 0
         restart
         copied
         append a:1
         copy",
        "snapshot
         the conversation is being copied
         the conversation is being copied
         the conversation is being copied
         the conversation is being copied
         snapshot
         1 head 1
         a conversation with this name exists already",
    );
}

#[test]
fn a_cursor_only_moves_forward_and_not_past_the_head() {
    check(
        "cursor alice 1
         append a:1 b:2
         cursor alice 1
         cursor alice 1
         cursor alice 3
         cursor alice 2
         cursor alice 1
         restart
         cursor bob 1
         cursor carol 1",
        "the conversation does not exist
         1 2 head 2
         change
         nothing
         no such message: the newest message is 2
         change
         nothing
         change
         too many participants with cursors (limit 2, conversation.cursors_max)",
    );
}

#[test]
fn a_state_change_with_a_stale_version_is_refused() {
    check(
        "put at=0 x
         put at=0 y
         put at=1 y
         put at=2 y
         append a:1
         cursor alice 1
         summarize 2
         summarize 1
         put at=3 z
         restart
         put at=4 z",
        "snapshot
         the version is 1, not 0
         snapshot
         nothing
         1 head 1
         change
         no such message: the newest message is 1
         snapshot
         snapshot
         nothing",
    );
}

#[test]
fn snapshot_is_written_every_64_state_changes() {
    let mut world = World::new();
    let batch = vec![message(None, "x"); 200];
    world.append(None, &batch).unwrap();
    let mut snapshots = Vec::new();
    for seq in 1..=200 {
        let who = "alice".to_owned();
        let what = world.change(None, &Change::Cursor { who, seq }).unwrap();
        if what == "snapshot" {
            snapshots.push(seq);
        }
        assert!(world.states.len() <= 65);
    }
    assert_eq!(snapshots, [64, 128, 192]);
    world.restart();
    assert_eq!(world.conversation.state().cursors.get("alice"), Some(200));
}

#[test]
fn an_old_id_costs_one_scan_of_older_messages() {
    let mut world = World::new();
    let ids: Vec<String> = (1..=3000).map(|it| format!("m{it}")).collect();
    for batch in ids.chunks(100) {
        let batch: Vec<_> = batch.iter().map(|id| message(Some(id), "x")).collect();
        world.append(None, &batch).unwrap();
    }
    assert_eq!(world.learned, 0);
    world.restart();
    world.at_hand = u64::MAX;
    let plan = world.append(None, &[message(Some("m7"), "x")]).unwrap();
    assert_eq!(*plan.places, [MessageSeq::Known(7)]);
    assert_eq!((world.learned, world.reads), (3000, 1));
    world.append(None, &[message(Some("n"), "x")]).unwrap();
    let plan = world.append(None, &[message(Some("m2999"), "x")]).unwrap();
    assert_eq!(*plan.places, [MessageSeq::Known(2999)]);
    assert_eq!((world.learned, world.reads), (3000, 2));
    assert!(world.conversation.ids_size() < 100_000);
}

#[test]
fn a_message_without_an_id_needs_no_reads() {
    let mut world = World::new();
    world.append(None, &[message(Some("a"), "x")]).unwrap();
    world.restart();
    world.append(None, &[message(None, "y")]).unwrap();
    assert_eq!((world.learned, world.reads), (0, 0));
}

#[test]
fn the_links_are_those_of_the_messages_before() {
    let mut world = World::new();
    let system = NewMessage {
        role: "system",
        ..message(None, "be kind")
    };
    let batch = [
        message(None, "a"),
        system,
        message(None, "b"),
        message(None, "c"),
    ];
    world.append(None, &batch).unwrap();
    world.restart();
    world.append(None, &[message(None, "d")]).unwrap();
    let links = |seq| {
        let links = view(&world.messages, seq).links;
        (links.tokens_before, links.instruction)
    };
    let all: Vec<_> = (1..=5).map(links).collect();
    assert_eq!(all, [(0, 0), (10, 0), (20, 2), (30, 2), (40, 2)]);
    assert_eq!(world.conversation.tokens(), 50);
}

#[test]
fn damaged_record_error_names_the_record() {
    let mut world = World::new();
    world.append(None, &[message(Some("a"), "x")]).unwrap();
    world.messages[0][0] = 99;
    let refused = world.append(None, &[message(Some("a"), "x")]);
    assert_eq!(refused, Err(Refusal::Damaged { seq: 1 }));
}

#[test]
fn participant_names_and_cursor_count_are_limited() {
    let conversation = Conversation::load(State::default(), 0, 0, None);
    let decide = |participants: Vec<String>| {
        let change = Change::Put {
            metadata: None,
            settings: Some(Settings {
                participants,
                ..Settings::default()
            }),
            is_archived: None,
        };
        conversation.decide_change(None, &change, &Limits::default(), 1)
    };
    let name = |number: usize| format!("{number:062}");
    assert!(decide((0..256).map(name).collect()).is_ok());
    let refused = decide((0..257).map(name).collect());
    assert!(matches!(
        refused,
        Err(Refusal::Size {
            size: 16_448,
            max: 16_384,
            ..
        })
    ));
    for wrong in ["", "a\nb"] {
        assert_eq!(decide(vec![wrong.to_owned()]), Err(Refusal::Who));
    }
}

#[test]
fn clear_erases_messages_and_summary_and_continues_numbering() {
    let mut world = World::new();
    let clear = |expect| Change::Clear { expect };
    assert_eq!(world.change(None, &clear(None)), Err(Refusal::Missing));
    let both = [message(Some("a"), "x"), message(Some("b"), "x")];
    world.append(None, &both).unwrap();
    let summary = Summary {
        through_seq: 1,
        tokens: 1,
        is_estimated: false,
        message: b"s".to_vec(),
    };
    world
        .change(None, &Change::Summarize(Some(summary)))
        .unwrap();
    let cursor = Change::Cursor {
        who: "al".to_owned(),
        seq: 2,
    };
    world.change(None, &cursor).unwrap();
    let mismatch = Refusal::SeqMismatch {
        head: 2,
        expected: 1,
    };
    assert_eq!(world.change(None, &clear(Some(1))), Err(mismatch));
    assert_eq!(world.change(None, &clear(Some(2))), Ok("snapshot"));
    for _ in 0..2 {
        let (conversation, state) = (&world.conversation, world.conversation.state());
        assert_eq!((conversation.start(), conversation.head()), (3, 2));
        assert_eq!((conversation.tokens(), state.cleared_seq()), (0, 2));
        assert_eq!((state.active_ms(), &state.summary), (7, &None));
        assert_eq!(state.cursors.get("al"), Some(2));
        world.restart();
    }
    // A repeated clear changes nothing, and the ids of the cleared messages are free again.
    assert_eq!(world.change(None, &clear(None)), Ok("nothing"));
    let plan = world.append(Some(2), &both[..1]).unwrap();
    assert_eq!(*plan.places, [MessageSeq::New(3)]);
    world
        .change(
            None,
            &Change::Put {
                metadata: None,
                settings: None,
                is_archived: Some(true),
            },
        )
        .unwrap();
    assert_eq!(world.change(None, &clear(None)), Err(Refusal::Archived));
}
