//! Erased and trimmed data that leaves the disk.

use super::drafts::{ChunkAssembler, finish, push};
use super::*;

/// More than the time in which the journal removes erased bytes from the disk.
const LATER_MS: u64 = 25 * 3_600_000;

/// A text that only the erased conversations contain.
const SECRET: &str = "sesame";

impl Fixture {
    fn open_in(&mut self, name: &str, id: &str, metadata: &str) -> DraftWriter {
        let new = NewDraft {
            id,
            role: "assistant",
            from: "bot",
            metadata: metadata.as_bytes(),
        };
        let mut pending = self.conversations().draft_open(&named(name), new).unwrap();
        self.line.step();
        done(&mut pending).unwrap().unwrap()
    }

    /// Returns the name of a conversation in the same shard as another.
    fn name_in_same_shard(&mut self, of: &str) -> String {
        let shard = |fixture: &Self, name: &str| {
            let store = &fixture.conversations().store;
            store.find(store::Kind::Conversation, name).unwrap().shard
        };
        for number in 0.. {
            let name = format!("a/b/neighbour-{number}");
            self.appended(&name, &["hello"]);
            if shard(self, &name) == shard(self, of) {
                return name;
            }
        }
        unreachable!("there are few shards")
    }

    /// Advances the clock while other conversations are written and erased data leaves the disk.
    fn pass_erase_within(&mut self, name: &str) {
        for round in 0..40 {
            self.world.pass_ms(5_000);
            let pending = self.append(name, None, &[&format!("round-{round}")]);
            drop(pending.unwrap());
            self.line.step();
            self.background.step(0);
        }
        for round in 0..600 {
            if round % 30 == 0 {
                drop(self.append(name, None, &[&format!("later-{round}")]));
            }
            self.line.step();
            self.background.step(LATER_MS);
        }
        assert_eq!(self.background.erase_pending(), None);
    }

    /// Returns the files that contain the bytes, as read now or after a crash.
    fn files_with(&self, text: &str) -> Vec<String> {
        let is_in = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
        let files = self.disk.files().into_iter().map(|(path, _)| path);
        files
            .filter(|path| {
                let (bytes, durable) = self.disk.images(path).unwrap();
                is_in(&bytes) || is_in(&durable)
            })
            .collect()
    }

    /// Creates a conversation whose messages, state and drafts contain [`SECRET`].
    fn store_secret(&mut self, name: &str) {
        let put = Change::Put {
            metadata: Some(SECRET.into()),
            settings: None,
            is_archived: None,
        };
        drop(self.conversations().change(&named(name), None, &put));
        let texts: Vec<_> = (0..20).map(|it| format!("{SECRET}-{it}")).collect();
        let messages: Vec<_> = texts.iter().map(|text| message("", text)).collect();
        let batch = Batch {
            expect: None,
            messages: &messages,
        };
        drop(self.conversations().append(&named(name), batch).unwrap());
        let mut writer = self.open_in(name, "answer", SECRET);
        push(&mut writer, &[SECRET, SECRET]);
        self.world.pass_ms(1_000);
        self.line.step();
        drop(finish(&mut writer, SECRET, Status::Complete));
        self.line.step();
    }

    fn erase(&mut self, name: &str) {
        let mut deleted = self.conversations().delete(&named(name)).unwrap();
        self.line.step();
        assert_eq!(done(&mut deleted), Some(Ok(())));
    }
}

fn fixture() -> Fixture {
    Fixture::streamed(ChunkAssembler)
}

#[test]
fn erased_data_leaves_the_disk_while_other_drafts_are_open() {
    let mut fixture = fixture();
    fixture.appended("a/b/erased", &["hello"]);
    let other = fixture.name_in_same_shard("a/b/erased");
    // Drafts overlap, so the log always has an open one.
    let mut long = fixture.open_in(&other, "long", "");
    push(&mut long, &["before"]);
    fixture.store_secret("a/b/erased");
    let mut open = fixture.open_in("a/b/erased", "never-over", SECRET);
    push(&mut open, &[SECRET]);
    fixture.world.pass_ms(1_000);
    fixture.line.step();
    let mut next = fixture.open_in(&other, "next", "");
    fixture.erase("a/b/erased");
    assert_ne!(fixture.files_with(SECRET), Vec::<String>::new());
    push(&mut long, &["behind"]);
    push(&mut next, &["another"]);
    fixture.pass_erase_within(&other);
    assert_eq!(fixture.files_with(SECRET), Vec::<String>::new());

    // The streaming author was not disturbed, and its chunks are there after the power failure.
    push(&mut long, &["end"]);
    fixture.world.pass_ms(1_000);
    fixture.line.step();
    drop(open);
    std::mem::forget((long, next));
    let mut fixture = fixture.crash();
    assert_eq!(fixture.conversations().drafts_recovered(), 2);
    fixture.line.step();
    let read = fixture.read(&other, Side::Last, 2).unwrap();
    let texts: Vec<_> = read.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["before+behind+end", "another"]);
    assert_eq!(fixture.files_with(SECRET), Vec::<String>::new());
}

#[test]
fn pending_draft_log_erasure_continues_after_restart() {
    let mut fixture = fixture();
    fixture.appended("a/b/erased", &["hello"]);
    let other = fixture.name_in_same_shard("a/b/erased");
    let long = fixture.open_in(&other, "long", "");
    fixture.store_secret("a/b/erased");
    fixture.erase("a/b/erased");
    std::mem::forget(long);
    let mut fixture = fixture.crash();
    assert_eq!(fixture.conversations().drafts_recovered(), 1);
    fixture.line.step();
    fixture.pass_erase_within(&other);
    assert_eq!(fixture.files_with(SECRET), Vec::<String>::new());
}

#[test]
fn erasing_or_trimming_frees_disk_while_others_write() {
    let large = "x".repeat(40_000);
    for keeps_less in [false, true] {
        let mut fixture = fixture();
        for number in 0..200 {
            let id = number.to_string();
            let batch = Batch {
                expect: None,
                messages: &[message(&id, &large)],
            };
            drop(fixture.conversations().append(&named("a/b/large"), batch));
            fixture.line.step();
            fixture.background.step(0);
        }
        fixture.pass_erase_within("a/b/other");
        let before = fixture.disk.used();
        if keeps_less {
            let settings = Settings {
                keep_last: 10,
                ..Settings::default()
            };
            let put = Change::Put {
                metadata: None,
                settings: Some(settings),
                is_archived: None,
            };
            drop(
                fixture
                    .conversations()
                    .change(&named("a/b/large"), None, &put),
            );
            fixture.line.step();
        } else {
            fixture.erase("a/b/large");
        }
        fixture.pass_erase_within("a/b/other");
        let after = fixture.disk.used();
        // Eight megabytes were written, and a few segments always remain.
        assert!(after + 6_000_000 < before, "{before} {after}");
        let read = fixture.read("a/b/other", Side::Last, 100).unwrap();
        assert_eq!(read.len(), 60);
    }
}

impl Fixture {
    fn clear(
        &mut self,
        name: &str,
        expect: Option<u64>,
    ) -> Result<ChangeResult, ConversationError> {
        let mut cleared = self.conversations().clear(&named(name), expect)?;
        self.line.step();
        done(&mut cleared).unwrap()
    }
}

#[test]
fn cleared_messages_summary_and_chunks_leave_the_disk() {
    let mut fixture = fixture();
    fixture.appended("a/b/cleared", &["hello"]);
    let other = fixture.name_in_same_shard("a/b/cleared");
    fixture.store_secret("a/b/cleared");
    // Metadata stays, so it must not contain the secret.
    let put = Change::Put {
        metadata: Some(b"{}".to_vec()),
        settings: None,
        is_archived: None,
    };
    drop(
        fixture
            .conversations()
            .change(&named("a/b/cleared"), None, &put),
    );
    let summary = conversations::Summary {
        through_seq: 3,
        tokens: 1,
        is_estimated: false,
        message: SECRET.into(),
    };
    let change = Change::Summarize(Some(summary));
    drop(
        fixture
            .conversations()
            .change(&named("a/b/cleared"), None, &change),
    );
    fixture.line.step();
    assert_ne!(fixture.files_with(SECRET), Vec::<String>::new());
    fixture.clear("a/b/cleared", None).unwrap();
    fixture.pass_erase_within(&other);
    assert_eq!(fixture.files_with(SECRET), Vec::<String>::new());
    let appended = fixture.appended("a/b/cleared", &["after"]);
    assert_eq!(appended.first_seq, 23);
    let mut fixture = fixture.crash();
    let after = vec![(23, "after".to_owned())];
    assert_eq!(
        fixture.read("a/b/cleared", Side::After(0), 10),
        Ok(after.clone())
    );
    assert_eq!(fixture.read("a/b/cleared", Side::Last, 10), Ok(after));
    assert_eq!(fixture.appended("a/b/cleared", &["next"]).first_seq, 24);
}

#[test]
fn watchers_are_told_of_a_clear_once_it_is_durable() {
    let mut fixture = fixture();
    let name = named("a/b/c");
    fixture.appended("a/b/c", &["one", "two"]);
    let mut ahead = fixture.conversations().watch(&name, 0).unwrap();
    assert_eq!(shown(&mut ahead), ["1 one", "2 two", "head 2"]);
    let mut behind = fixture.conversations().watch(&name, 1).unwrap();
    drop(fixture.conversations().clear(&name, Some(2)).unwrap());
    assert_eq!(shown(&mut ahead), Vec::<String>::new(), "it is not durable");
    fixture.line.step();
    assert_eq!(shown(&mut ahead), ["cleared 2"]);
    assert_eq!(shown(&mut behind), ["cleared 2", "head 2"]);
    fixture.appended("a/b/c", &["one"]);
    assert_eq!(shown(&mut ahead), ["3 one"]);
    assert_eq!(shown(&mut behind), ["3 one"]);
    let mut later = fixture.conversations().watch(&name, 0).unwrap();
    assert_eq!(shown(&mut later), ["cleared 2", "3 one", "head 3"]);
    let mut knows = fixture.conversations().watch(&name, 2).unwrap();
    assert_eq!(shown(&mut knows), ["3 one", "head 3"]);
}

#[test]
fn only_the_writer_that_knows_the_head_clears_and_a_draft_survives() {
    let mut fixture = fixture();
    fixture.appended("a/b/c", &["one", "two"]);
    let mut writer = fixture.open_in("a/b/c", "answer", "");
    push(&mut writer, &["before"]);
    let refused = fixture.clear("a/b/c", Some(1)).unwrap_err();
    assert_eq!(
        (refused.code(), refused.details().head_seq),
        (ErrorCode::Conflict, Some(2))
    );
    fixture.clear("a/b/c", Some(2)).unwrap();
    push(&mut writer, &["after"]);
    fixture.world.pass_ms(1_000);
    fixture.line.step();
    std::mem::forget(writer);
    let mut fixture = fixture.crash();
    fixture.line.step();
    let read = fixture.read("a/b/c", Side::After(0), 10);
    assert_eq!(read, Ok(vec![(3, "before+after".to_owned())]));
}

#[test]
fn crash_during_a_clear_leaves_all_messages_or_none() {
    let mut outcomes = [0, 0];
    for seed in 0..40 {
        let mut fixture = fixture();
        fixture.starts = seed;
        fixture.appended("a/b/c", &["one", "two"]);
        drop(
            fixture
                .conversations()
                .clear(&named("a/b/c"), None)
                .unwrap(),
        );
        let mut fixture = fixture.crash();
        let read = fixture.read("a/b/c", Side::After(0), 10).unwrap();
        let is_cleared = read.is_empty();
        outcomes[usize::from(is_cleared)] += 1;
        assert_eq!(read.len(), if is_cleared { 0 } else { 2 });
        let appended = fixture.appended("a/b/c", &["one"]);
        assert_eq!(appended.first_seq, if is_cleared { 3 } else { 1 });
        fixture.clear("a/b/c", None).unwrap();
        let fixture = fixture.crash();
        assert_eq!(fixture.read("a/b/c", Side::After(0), 10), Ok(Vec::new()));
    }
    assert!(outcomes[0] > 0, "{outcomes:?}");
}
