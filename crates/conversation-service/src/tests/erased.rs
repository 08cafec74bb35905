//! Erased and trimmed data that leaves the disk.

use super::drafts::{Joined, finish, push};
use super::*;

/// More than the time in which the journal removes erased bytes from the disk.
const LATER_MS: u64 = 25 * 3_600_000;

/// A text that only the erased conversations contain.
const SECRET: &str = "sesame";

impl Kept {
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
    fn neighbour(&mut self, of: &str) -> String {
        let shard = |kept: &Self, name: &str| {
            let store = &kept.conversations().store;
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
    fn say_secret(&mut self, name: &str) {
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

fn kept() -> Kept {
    Kept::streamed(Joined)
}

#[test]
fn nothing_of_an_erased_conversation_is_on_the_disk_though_others_stream_all_the_time() {
    let mut kept = kept();
    kept.appended("a/b/erased", &["hello"]);
    let other = kept.neighbour("a/b/erased");
    // Drafts overlap, so the log always has an open one.
    let mut long = kept.open_in(&other, "long", "");
    push(&mut long, &["before"]);
    kept.say_secret("a/b/erased");
    let mut open = kept.open_in("a/b/erased", "never-over", SECRET);
    push(&mut open, &[SECRET]);
    kept.world.pass_ms(1_000);
    kept.line.step();
    let mut next = kept.open_in(&other, "next", "");
    kept.erase("a/b/erased");
    assert_ne!(kept.files_with(SECRET), Vec::<String>::new());
    push(&mut long, &["behind"]);
    push(&mut next, &["another"]);
    kept.pass_erase_within(&other);
    assert_eq!(kept.files_with(SECRET), Vec::<String>::new());

    // The streaming author was not disturbed, and its chunks are there after the power failure.
    push(&mut long, &["end"]);
    kept.world.pass_ms(1_000);
    kept.line.step();
    drop(open);
    std::mem::forget((long, next));
    let mut kept = kept.crash();
    assert_eq!(kept.conversations().drafts_recovered(), 2);
    kept.line.step();
    let read = kept.read(&other, Side::Last, 2).unwrap();
    let texts: Vec<_> = read.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["before+behind+end", "another"]);
    assert_eq!(kept.files_with(SECRET), Vec::<String>::new());
}

#[test]
fn what_was_to_leave_the_log_of_drafts_leaves_it_after_a_start_too() {
    let mut kept = kept();
    kept.appended("a/b/erased", &["hello"]);
    let other = kept.neighbour("a/b/erased");
    let long = kept.open_in(&other, "long", "");
    kept.say_secret("a/b/erased");
    kept.erase("a/b/erased");
    std::mem::forget(long);
    let mut kept = kept.crash();
    assert_eq!(kept.conversations().drafts_recovered(), 1);
    kept.line.step();
    kept.pass_erase_within(&other);
    assert_eq!(kept.files_with(SECRET), Vec::<String>::new());
}

#[test]
fn the_disk_has_more_room_after_a_conversation_was_erased_or_keeps_less_while_others_write() {
    let large = "x".repeat(40_000);
    for keeps_less in [false, true] {
        let mut kept = kept();
        for number in 0..200 {
            let id = number.to_string();
            let batch = Batch {
                expect: None,
                messages: &[message(&id, &large)],
            };
            drop(kept.conversations().append(&named("a/b/large"), batch));
            kept.line.step();
            kept.background.step(0);
        }
        kept.pass_erase_within("a/b/other");
        let before = kept.disk.used();
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
            drop(kept.conversations().change(&named("a/b/large"), None, &put));
            kept.line.step();
        } else {
            kept.erase("a/b/large");
        }
        kept.pass_erase_within("a/b/other");
        let after = kept.disk.used();
        // Eight megabytes were written, and a few segments always remain.
        assert!(after + 6_000_000 < before, "{before} {after}");
        let read = kept.read("a/b/other", Side::Last, 100).unwrap();
        assert_eq!(read.len(), 60);
    }
}
