//! Conversations on a disk that is full, fails, loses unsynced data or flips bits.

use journal::Health;
use journal::disk::simulated::{Fault, Kind as Call};

use super::*;

/// Enough for several segments.
const ROUNDS: usize = 60;

/// The byte that fills the message to be searched for.
const SIZE: usize = 50_000;

impl Fixture {
    /// Appends one large message and syncs it.
    fn fill(&mut self, name: &str, id: &str, byte: u8) -> Result<Appended, ConversationError> {
        let parts = String::from_utf8(vec![byte; SIZE]).unwrap();
        let messages = [message(id, &parts)];
        let batch = Batch {
            expect: None,
            messages: &messages,
        };
        let mut pending = self.conversations().append(&named(name), batch)?;
        for _ in 0..100 {
            self.line.step();
            if let Some(outcome) = done(&mut pending) {
                return outcome;
            }
            // A segment is full, and the next one must be created.
            self.background.step(0);
        }
        panic!("it is not written");
    }

    /// Runs the background compaction of the write-ahead log to completion.
    fn file(&mut self, now_ms: u64) {
        for _ in 0..1_000 {
            self.background.step(now_ms);
            self.line.step();
        }
    }

    fn health(&self) -> Health {
        self.world.store.journal.health()
    }
}

#[test]
fn full_disk_refuses_appends_but_serves_reads_until_space_is_freed() {
    let mut fixture = Fixture::new();
    fixture.appended("a/b/c", &["one"]);
    fixture.disk.set_capacity(fixture.disk.used());
    let mut taken = 0;
    let refusal = loop {
        match fixture.fill("a/b/c", &format!("m{taken}"), b'x') {
            Ok(_) => taken += 1,
            Err(refusal) => break refusal,
        }
        fixture.background.step(0);
        assert!(taken < 1_000);
    };
    assert_eq!(refusal.code(), ErrorCode::Unavailable);
    assert!(refusal.to_string().contains("full"), "{}", refusal);
    assert_eq!(fixture.health(), Health::DiskFull);
    let read = fixture.read("a/b/c", Side::Last, 1).unwrap();
    assert_eq!(read[0].0, taken + 1);
    // Space is freed.
    fixture.disk.set_capacity(u64::MAX);
    fixture.file(60_000);
    let appended = fixture.fill("a/b/c", "after", b'y').unwrap();
    assert_eq!(appended.first_seq, taken + 2);
    assert_eq!(fixture.health(), Health::Serving);
    let fixture = fixture.crash();
    assert_eq!(
        fixture.read("a/b/c", Side::Last, 1).unwrap()[0].0,
        taken + 2
    );
}

#[test]
fn failed_sync_makes_pending_writes_unconfirmed_and_stops_writing() {
    let mut fixture = Fixture::new();
    fixture.appended("a/b/c", &["one"]);
    let mut first = fixture.append("a/b/c", None, &["two"]).unwrap();
    let mut again = fixture.append("a/b/c", None, &["two"]).unwrap();
    let mut conflict = fixture.append("a/b/c", Some(1), &["three"]).unwrap();
    let failing = |call: &journal::disk::simulated::Call<'_>| call.kind == Call::SyncData;
    fixture.disk.fail_once(Fault::Broken, failing);
    fixture.line.step();
    // Neither the write nor the operations that depend on it are acknowledged.
    for pending in [&mut first, &mut again, &mut conflict] {
        let refusal = done(pending).unwrap().unwrap_err();
        assert_eq!(refusal.code(), ErrorCode::Unconfirmed);
    }
    assert!(matches!(fixture.health(), Health::Failed { .. }));
    // The disk would accept writes now, but a failed sync is never repeated.
    let refusal = fixture.append("a/b/c", None, &["four"]).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Unavailable);
    let mut change = fixture.conversations().delete(&named("a/b/c"));
    let refusal = match &mut change {
        Ok(pending) => done(pending).unwrap().unwrap_err(),
        Err(refusal) => refusal.clone(),
    };
    assert_eq!(refusal.code(), ErrorCode::Unavailable);
    let read = fixture.read("a/b/c", Side::After(0), 10).unwrap();
    assert_eq!(read, [(1, "one".to_owned())]);
    // The next start loads the data on the disk: all of it, or that before the write.
    let mut fixture = fixture.crash();
    let read = fixture.read("a/b/c", Side::After(0), 10).unwrap();
    assert!(read.len() == 1 || read.len() == 2, "{read:?}");
    assert_eq!(fixture.appended("a/b/c", &["two"]).first_seq, 2);
}

#[test]
fn corrupted_message_is_reported_with_its_file_and_never_served() {
    let mut fixture = Fixture::new();
    fixture.fill("a/b/c", "damaged", b'Q').unwrap();
    for round in 0..ROUNDS {
        fixture.fill("a/b/c", &round.to_string(), b'x').unwrap();
    }
    fixture.file(60_000);
    // Nothing of it is in memory any more.
    let mut fixture = fixture.crash();
    let (path, bit) = fixture.place_of(b'Q');
    fixture.disk.flip(&path, bit).unwrap();
    let refusal = fixture.read("a/b/c", Side::After(0), 1).unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::Internal);
    assert!(refusal.to_string().contains(&path), "{}", refusal);
    // A watcher gets the error too; undamaged messages are returned.
    let mut watch = fixture.conversations().watch(&named("a/b/c"), 0).unwrap();
    assert_eq!(shown(&mut watch), ["internal"]);
    drop(watch);
    let read = fixture.read("a/b/c", Side::Last, 10).unwrap();
    assert_eq!(read.len(), 10);
    let head = read[9].0;
    assert_eq!(head, ROUNDS as u64 + 1);
    assert_eq!(fixture.fill("a/b/c", "", b'y').unwrap().first_seq, head + 1);
    // An id cannot be compared with that of the damaged message.
    let refusal = fixture.fill("a/b/c", "new", b'y').unwrap_err();
    assert!(refusal.to_string().contains(&path), "{}", refusal);
}

#[test]
fn torn_tail_loses_only_unacknowledged_messages() {
    for seed in 0..50 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut fixture = Fixture::new();
        fixture.appended("a/b/c", &["one"]);
        let large = "x".repeat(3_000);
        let messages = [message("two", &large), message("three", &large)];
        let batch = Batch {
            expect: None,
            messages: &messages,
        };
        // It is written, and the power fails midway.
        let failing = |call: &journal::disk::simulated::Call<'_>| call.kind == Call::SyncData;
        fixture.disk.fail_once(Fault::Broken, failing);
        drop(
            fixture
                .conversations()
                .append(&named("a/b/c"), batch)
                .unwrap(),
        );
        fixture.line.step();
        let torn = rng.u16(..512);
        let fixture = fixture.crash_with(|_| match rng.u8(..3) {
            0 => Fate::Kept,
            1 => Fate::Lost,
            _ => Fate::Torn(torn),
        });
        let read = fixture.read("a/b/c", Side::After(0), 10).unwrap();
        assert!(read.len() == 1 || read.len() == 3, "{seed}: {}", read.len());
        assert_eq!(read[0], (1, "one".to_owned()));
        let mut fixture = fixture;
        let appended = fixture.appended("a/b/c", &["four"]);
        assert_eq!(appended.first_seq, read.len() as u64 + 1, "{seed}");
    }
}

#[test]
fn sequence_numbers_of_trimmed_messages_are_not_reused_after_restart() {
    let mut fixture = Fixture::new();
    let settings = Settings {
        keep_last: 1,
        ..Settings::default()
    };
    let change = Change::Put {
        metadata: None,
        settings: Some(settings),
        is_archived: None,
    };
    drop(
        fixture
            .conversations()
            .change(&named("a/b/c"), None, &change),
    );
    for number in 1..=20 {
        fixture.appended("a/b/c", &[&format!("m{number}")]);
    }
    fixture.world.pass_ms(2_000);
    fixture.line.step();
    let mut fixture = fixture.crash();
    assert_eq!(fixture.read("a/b/c", Side::Last, 10).unwrap()[0].0, 20);
    assert_eq!(fixture.appended("a/b/c", &[""]).first_seq, 21);
}

impl Fixture {
    /// Finds the place on the disk with so many equal bytes that it must be the message.
    fn place_of(&self, byte: u8) -> (String, u64) {
        for (path, _) in self.disk.files() {
            let (bytes, _) = self.disk.images(&path).unwrap();
            let run = vec![byte; 1_000];
            if let Some(at) = bytes.windows(run.len()).position(|window| window == run) {
                return (path, 8 * (at as u64 + 500) + 3);
            }
        }
        panic!("it is nowhere");
    }
}
