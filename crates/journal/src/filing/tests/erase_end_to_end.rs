//! Erases through the whole journal: line, filing and restarts.

use super::*;
use crate::{Journal, LineStep, ReadLimit, SteppedJournal};

const SECRET: &[u8] = b"what a whole journal must forget";
const SHARD: ShardId = ShardId(1);
const ERASED: StreamId = StreamId(5);
const KEPT: StreamId = StreamId(6);

struct Whole {
    disk: Arc<SimulatedDisk>,
    stepped: SteppedJournal,
    now_ms: u64,
    starts: u64,
}

fn open(disk: &Arc<SimulatedDisk>, entropy: u64) -> SteppedJournal {
    let options = crate::Options {
        journal_id: JOURNAL,
        entropy,
        shard_count: 2,
        segment_size: SEGMENT_SIZE,
        reserve_size: 4096,
        erase_within_ms: HOUR_MS,
        ..crate::Options::default()
    };
    Journal::open_stepped(disk.clone(), &options).unwrap()
}

impl Whole {
    fn new() -> Whole {
        let disk = Arc::new(SimulatedDisk::new(1));
        let stepped = open(&disk, 1);
        Whole {
            disk,
            stepped,
            now_ms: 10 * HOUR_MS,
            starts: 1,
        }
    }

    fn append(&mut self, stream: StreamId, payload: &[u8]) -> u64 {
        let appended = self
            .stepped
            .journal
            .lock(SHARD, self.now_ms)
            .append(stream, None, 5, payload);
        self.settle();
        appended.unwrap().offset
    }

    fn erase(&mut self) {
        self.erase_durably();
        self.settle();
    }

    /// Erases streams; the filing does not run.
    fn erase_durably(&mut self) {
        let journal = &self.stepped.journal;
        journal.lock(SHARD, self.now_ms).erase(ERASED).unwrap();
        self.settle_line();
    }

    /// Steps the line until everything is on disk, without the filing.
    fn settle_line(&mut self) {
        loop {
            match self.stepped.line.step() {
                LineStep::Worked => {}
                LineStep::Starved => self.stepped.journal.shared().spares.prepare().unwrap(),
                LineStep::Idle | LineStep::Failed => return,
            }
        }
    }

    /// Steps until neither the line nor the filing has work.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            let line = self.stepped.line.step();
            let filing = self.stepped.background.step(self.now_ms);
            assert_ne!((line, filing), (LineStep::Failed, Step::Failed));
            if line == LineStep::Idle && filing == Step::Idle {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn restart(mut self) -> Whole {
        self.disk.kill();
        self.starts += 1;
        let stepped = open(&self.disk, self.starts);
        Whole { stepped, ..self }
    }

    fn write_much(&mut self) {
        for round in 0..120_u8 {
            self.append(KEPT, &[round; 700]);
            if round % 3 == 0 {
                self.append(ERASED, SECRET);
            }
        }
    }

    fn retained_bytes(&self) -> Vec<u8> {
        let limit = ReadLimit {
            records: usize::MAX,
            bytes: usize::MAX,
        };
        let read = self.stepped.journal.read(SHARD, KEPT, 0, limit).unwrap();
        read.records
            .iter()
            .map(|record| record.payload[0])
            .collect()
    }

    fn files_with_secret(&self) -> Vec<String> {
        let holds = |path: &String| {
            let (volatile, durable) = self.disk.images(path).unwrap();
            let mut images = [volatile, durable].into_iter();
            images.any(|image| image.windows(SECRET.len()).any(|at| at == SECRET))
        };
        self.disk
            .files()
            .into_iter()
            .map(|(path, _)| path)
            .filter(holds)
            .collect()
    }

    /// Checks that no erased bytes exist if no erase is pending.
    fn check_pending(&self) {
        if self.stepped.background.erase_pending().is_none() {
            assert_eq!(self.files_with_secret(), [""; 0]);
        }
    }

    /// Steps until no erase is pending. A restart at any moment must give the same result.
    fn step_until_done(&mut self) {
        for _ in 0..1_000 {
            self.reopened_copy().check_pending();
            self.stepped.line.step();
            self.stepped.background.step(self.now_ms);
            self.check_pending();
            if self.stepped.background.erase_pending().is_none() {
                return;
            }
        }
        panic!("it never ends");
    }

    /// Opens the same directory in another process.
    fn reopened_copy(&self) -> Whole {
        let disk = Arc::new(self.disk.fork());
        Whole {
            stepped: open(&disk, 1000),
            disk,
            ..*self
        }
    }

    fn check_forgotten(&mut self) {
        self.now_ms += HOUR_MS;
        self.settle();
        assert_eq!(self.stepped.background.erase_pending(), None);
        assert_eq!(self.files_with_secret(), [""; 0]);
        assert_eq!(self.retained_bytes(), (0..120).collect::<Vec<u8>>());
        let state = self.stepped.journal.stream(SHARD, ERASED).unwrap();
        assert_eq!((state.start, state.next), (40, 40));
    }
}

#[test]
fn an_erase_is_carried_out_while_the_node_is_idle() {
    let mut whole = Whole::new();
    whole.write_much();
    whole.erase();
    assert!(!whole.files_with_secret().is_empty());
    whole.check_forgotten();
    assert_eq!(whole.append(ERASED, b"a new beginning"), 40);
}

#[test]
fn erase_is_carried_out_after_a_restart_without_writes() {
    let mut whole = Whole::new();
    whole.write_much();
    whole.erase();
    let mut whole = whole.restart();
    assert!(!whole.files_with_secret().is_empty());
    whole.check_forgotten();
    let whole = whole.restart();
    assert_eq!(whole.files_with_secret(), [""; 0]);
    let state = whole.stepped.journal.stream(SHARD, ERASED).unwrap();
    assert_eq!((state.start, state.next), (40, 40));
}

#[test]
fn restart_during_an_erase_leaves_no_erased_bytes() {
    for steps in (0..120).step_by(7) {
        let mut whole = Whole::new();
        whole.write_much();
        whole.erase();
        whole.now_ms += HOUR_MS / 2;
        for _ in 0..steps {
            whole.stepped.line.step();
            whole.stepped.background.step(whole.now_ms);
        }
        let mut whole = whole.restart().restart();
        whole.check_forgotten();
    }
}

#[test]
fn erase_is_pending_until_no_file_has_its_bytes() {
    let mut whole = Whole::new();
    whole.write_much();
    whole.erase();
    whole.now_ms += HOUR_MS;
    whole.step_until_done();
    whole.reopened_copy().check_pending();
    whole.check_forgotten();
}

#[test]
fn erase_waits_for_the_active_segment() {
    let mut whole = Whole::new();
    whole.write_much();
    whole.append(ERASED, SECRET);
    whole.erase();
    whole.now_ms += HOUR_MS;
    // The line does not run: its thread may be late.
    while whole.stepped.background.step(whole.now_ms) == Step::Worked {}
    whole.check_pending();
    assert!(whole.stepped.background.erase_pending().is_some());
    let due_ms = whole.stepped.background.due_ms(whole.now_ms);
    assert!(due_ms.is_some_and(|due_ms| due_ms > whole.now_ms));
    whole.settle();
    assert_eq!(whole.stepped.background.erase_pending(), None);
    whole.check_pending();
}

#[test]
fn erase_waits_until_every_extent_was_counted() {
    let mut whole = Whole::new();
    // A few bytes that nothing else would remove from a large extent.
    whole.append(ERASED, SECRET);
    for round in 0..60_u8 {
        whole.append(KEPT, &[round; 700]);
    }
    whole.erase();
    whole.now_ms += HOUR_MS;
    whole.step_until_done();
}

#[test]
fn recycled_files_are_zeroed_before_an_erase_is_done() {
    let mut whole = Whole::new();
    whole.write_much();
    // Sealed and not filed: all of it is filed while the erase is carried out.
    for round in 0..120_u8 {
        let mut guard = whole.stepped.journal.lock(SHARD, whole.now_ms);
        guard.append(KEPT, None, 5, &[round; 700]).unwrap();
        guard.append(ERASED, None, 5, SECRET).unwrap();
        drop(guard);
        whole.settle_line();
    }
    whole.erase_durably();
    whole.now_ms += HOUR_MS;
    whole.step_until_done();
}
