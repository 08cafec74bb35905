//! When no erase is pending, the erased bytes are in no file, synced or not.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use journal::disk::SimulatedDisk;
use journal::disk::simulated::{Fault, Kind};
use journal::{Journal, LineStep, Options, ShardId, Status, SteppedJournal, StreamId, Ticket};

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
    /// Number of acts while a retained segment had bytes of an erase that is pending.
    retained: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let piece_size_min = *[0, 500, 8 << 10].get(rng.usize(..3)).unwrap_or(&0);
        Self::with(rng, piece_size_min)
    }

    fn with(mut rng: fastrand::Rng, piece_size_min: u64) -> Self {
        Self {
            disk: SimulatedDisk::new(rng.u64(..)),
            piece_size_min,
            rng,
            running: None,
            now_ms: 1_700_000_000_000,
            kept: BTreeMap::new(),
            erased: HashSet::new(),
            looked: 0,
            retained: 0,
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
        let stream = self.draw_stream();
        let count = self.rng.usize(2..200);
        self.append_to(stream, count);
    }

    /// Appends a record of this number of marks.
    fn append_to(&mut self, (shard, stream): (ShardId, StreamId), count: usize) {
        let mark = self.rng.u64(..).to_le_bytes();
        let payload = mark.repeat(count);
        let now_ms = self.now_ms;
        let mut guard = self.running().journal.lock(shard, now_ms);
        guard.append(stream, None, 0, &payload).unwrap();
        drop(guard);
        self.kept.entry((shard, stream)).or_default().push(mark);
    }

    /// Erases a stream and waits for the acknowledgement.
    fn erase(&mut self) {
        let stream = self.draw_stream();
        self.erase_stream(stream);
    }

    fn erase_stream(&mut self, (shard, stream): (ShardId, StreamId)) {
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

    /// Writes what is queued, seals the active segment, and steps until everything is filed.
    fn file(&mut self) {
        while self.running().line.step() != LineStep::Idle {
            self.step_background();
        }
        let end = self.running().journal.seal();
        while !self.running().journal.is_filed(end) {
            self.running().line.step();
            self.step_background();
        }
    }

    /// Lets the time of an erase come, and steps until it is carried out, with a check after each step.
    fn carry_out(&mut self) {
        self.now_ms += 10_000;
        while !self.erased.is_empty() {
            self.now_ms += 10;
            self.running().line.step();
            self.step_background();
            self.check_files();
        }
    }

    fn retained_segments(&mut self) -> usize {
        self.running().journal.filing().retained_segments
    }

    /// Checks all files, if no erased bytes may be there.
    fn check_files(&mut self) {
        if self.erased.is_empty() {
            return;
        }
        if self.running().background.erase_pending().is_some() {
            self.retained += u64::from(self.retained_segments() > 0);
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
    let (mut looked, mut retained) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.open();
        for _ in 0..ACTS {
            world.act();
        }
        looked += world.looked;
        retained += world.retained;
    }
    assert!(looked > SEEDS, "looked {looked} times");
    assert!(retained > SEEDS, "{retained} acts with a retained segment");
}

#[test]
fn erase_waits_until_a_segment_shared_by_shards_is_removed() {
    let mut world = World::with(fastrand::Rng::with_seed(1), 0);
    world.open();
    let (small, large) = ((ShardId(0), StreamId(1)), (ShardId(1), StreamId(1)));
    world.append_to(small, 50);
    for _ in 0..10 {
        world.append_to(large, 125);
    }
    world.file();
    assert_eq!(world.retained_segments(), 1);
    world.erase_stream(small);
    // The extent of the other shard is rewritten later than everything else is done.
    world.disk.fail_once(Fault::Broken, |call| {
        call.kind == Kind::SyncAll && call.path.starts_with("extents/0001-")
    });
    world.carry_out();
    assert_eq!(world.retained_segments(), 0);
}

#[test]
fn erase_leaves_no_bytes_of_an_earlier_segment_in_a_retained_one() {
    let mut world = World::with(fastrand::Rng::with_seed(2), 900);
    world.open();
    let (short, long) = ((ShardId(0), StreamId(1)), (ShardId(1), StreamId(1)));
    for _ in 0..3 {
        // Copied, so that the file becomes a spare.
        for number in 0..40 {
            world.append_to((short.0, StreamId(number % 2)), 30);
        }
        world.file();
    }
    assert_eq!(world.retained_segments(), 0);
    for count in 1..4 {
        for _ in 0..10 {
            world.append_to(long, 125);
        }
        world.file();
        assert_eq!(world.retained_segments(), count);
    }
    assert_eq!(world.retained_segments(), 3);
    world.erase_stream(short);
    world.carry_out();
    assert_eq!(world.retained_segments(), 3);
}
