//! When no erase is pending, the erased bytes are in no file, synced or not.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use journal::disk::SimulatedDisk;
use journal::{Journal, Options, ShardId, Status, SteppedJournal, StreamId, Ticket};

const SEEDS: u64 = 25;
const ACTS: usize = 250;
const STREAMS: u64 = 5;
const SHARDS: u16 = 2;

/// Payloads that share no bytes with each other, repeated within each.
const MARK_SIZE: usize = 8;
type Mark = [u8; MARK_SIZE];

/// A journal that erases at once, and the bytes that must not be on its disk.
struct World {
    rng: fastrand::Rng,
    disk: SimulatedDisk,
    running: Option<SteppedJournal>,
    now_ms: u64,
    /// Decides which segments are filed without copying their records.
    piece_size_min: u64,
    kept: BTreeMap<(ShardId, StreamId), Vec<Mark>>,
    erased: HashSet<Mark>,
    /// Number of checks with erased bytes and no pending erase.
    looked: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        Self {
            disk: SimulatedDisk::new(rng.u64(..)),
            piece_size_min: *[0, 500, 8 << 10].get(rng.usize(..3)).unwrap_or(&0),
            rng,
            running: None,
            now_ms: 1_700_000_000_000,
            kept: BTreeMap::new(),
            erased: HashSet::new(),
            looked: 0,
        }
    }

    fn open(&mut self) {
        let options = Options {
            journal_id: 5,
            entropy: self.rng.u64(..),
            shard_count: SHARDS,
            segment_size: 16 << 10,
            reserve_size: 0,
            piece_size_min: self.piece_size_min,
            erase_within_ms: 2_000,
            ..Options::default()
        };
        let opened = Journal::open_stepped(Arc::new(self.disk.clone()), &options);
        self.running = Some(opened.unwrap());
    }

    fn act(&mut self) {
        self.now_ms += self.rng.u64(..300);
        match self.rng.u8(..100) {
            0..35 => self.append(),
            35..40 => self.erase(),
            40..60 => drop(self.running().line.step()),
            60..98 => self.step_background(),
            _ => {
                self.disk.crash(&mut self.rng);
                self.open();
            }
        }
        self.check_files();
    }

    fn running(&mut self) -> &mut SteppedJournal {
        self.running.as_mut().unwrap()
    }

    fn draw_stream(&mut self) -> (ShardId, StreamId) {
        let shard = ShardId(self.rng.u16(..SHARDS));
        (shard, StreamId(self.rng.u64(..STREAMS)))
    }

    fn append(&mut self) {
        let (shard, stream) = self.draw_stream();
        let mark = self.rng.u64(..).to_le_bytes();
        let payload = mark.repeat(self.rng.usize(2..200));
        let now_ms = self.now_ms;
        let mut guard = self.running().journal.lock(shard, now_ms);
        guard.append(stream, None, 0, &payload).unwrap();
        drop(guard);
        self.kept.entry((shard, stream)).or_default().push(mark);
    }

    /// Erases a stream and waits for the acknowledgement.
    fn erase(&mut self) {
        let (shard, stream) = self.draw_stream();
        let now_ms = self.now_ms;
        let erased = self.running().journal.lock(shard, now_ms).erase(stream);
        self.wait_for(erased.unwrap());
        let marks = self.kept.remove(&(shard, stream));
        self.erased.extend(marks.unwrap_or_default());
    }

    fn wait_for(&mut self, ticket: Ticket) {
        while self.running().journal.status(ticket) != Status::Durable {
            self.running().line.step();
            self.step_background();
        }
    }

    fn step_background(&mut self) {
        let now_ms = self.now_ms;
        self.running().background.step(now_ms);
    }

    /// Checks all files, if no erased bytes may be there.
    fn check_files(&mut self) {
        if self.erased.is_empty() || self.running().background.erase_pending().is_some() {
            return;
        }
        self.looked += 1;
        for (path, _) in self.disk.files() {
            let (bytes, durable) = self.disk.images(&path).unwrap();
            for image in [bytes, durable] {
                let mut marks = image.windows(MARK_SIZE);
                let found = marks.position(|window| self.erased.contains(window));
                assert_eq!(found, None, "erased bytes in {path}");
            }
        }
        self.erased.clear();
    }
}

#[test]
fn erased_bytes_are_nowhere_when_no_erase_is_pending() {
    let mut looked = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.open();
        for _ in 0..ACTS {
            world.act();
        }
        looked += world.looked;
    }
    assert!(looked > SEEDS, "looked {looked} times");
}
