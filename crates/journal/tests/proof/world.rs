//! A journal on a simulated disk, next to a model of its expected contents.
//!
//! Everything runs on one thread and from one seed: calls, steps of the line and the filing, and
//! crashes at any call to the disk. The model remembers acknowledged records and checks what the
//! journal returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use journal::disk::SimulatedDisk;
use journal::disk::simulated::{Fault, Kind};
use journal::filing::Step;
use journal::{
    AppendError, Commit, CutError, Health, Index, Journal, LineStep, OpenError, Options, ReadError,
    ReadLimit, ShardId, Stage, Status, SteppedJournal, StreamId, Ticket,
};

use crate::model::{self, Change, Payload, Stream, Streams};

/// Parameters of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) shard_count: u16,
    /// Streams per shard.
    pub(crate) stream_count: u64,
    pub(crate) segment_size: u64,
    pub(crate) payload_size_max: usize,
    pub(crate) tail_bytes_max: usize,
    pub(crate) reserve_size: u64,
    /// Decides which segments are filed without copying their records.
    pub(crate) piece_size_min: u64,
    /// Decides whether spares are zeroed or only allocated.
    pub(crate) bulk_sync_size: u64,
    pub(crate) commit: Commit,
}

impl Shape {
    /// Small segments, so that few calls do a lot; the seed determines the rest.
    pub(crate) fn of(rng: &mut fastrand::Rng) -> Self {
        Self {
            shard_count: rng.u16(1..4),
            stream_count: rng.u64(1..6),
            segment_size: 16 << 10,
            payload_size_max: *[40, 300, 3000].get(rng.usize(..3)).unwrap_or(&40),
            tail_bytes_max: *[0, 2000, 1 << 20].get(rng.usize(..3)).unwrap_or(&0),
            reserve_size: 4096,
            piece_size_min: *[0, 300, 1_000, 8 << 10].get(rng.usize(..4)).unwrap_or(&0),
            bulk_sync_size: *[0, 256 << 10].get(rng.usize(..2)).unwrap_or(&0),
            commit: match rng.u8(..4) {
                0 => Commit::ByCaller,
                _ => Commit::WithDurable,
            },
        }
    }

    fn options(&self, journal_id: u64, entropy: u64) -> Options {
        Options {
            journal_id,
            entropy,
            shard_count: self.shard_count,
            segment_size: self.segment_size,
            tail_bytes_max: self.tail_bytes_max,
            reserve_size: self.reserve_size,
            piece_size_min: self.piece_size_min,
            bulk_sync_size: self.bulk_sync_size,
            commit: self.commit,
            ..Options::default()
        }
    }
}

/// Ends of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A power failure.
    Crash,
    /// The process dies, the machine continues.
    Kill,
}

impl End {
    pub(crate) fn draw(rng: &mut fastrand::Rng) -> Self {
        match rng.u8(..4) {
            0 => Self::Kill,
            _ => Self::Crash,
        }
    }

    /// Returns true if this end is possible after a device failure in such a call. A file system
    /// that cannot make a name durable stops until it is mounted again.
    pub(crate) fn may_follow(self, kind: Kind) -> bool {
        self == Self::Crash || kind != Kind::SyncDir
    }
}

/// Number of tickets from which those with a final outcome are no longer checked.
const TICKETS_MAX: usize = 256;

/// A ticket, and what may become of its block.
struct Expected {
    ticket: Ticket,
    /// The outcome of a block that is void.
    void: Option<Status>,
    /// The stage that was reported as reached; it stays reached.
    reached: Option<Stage>,
}

/// A journal and its model.
pub(crate) struct World {
    pub(crate) shape: Shape,
    pub(crate) disk: SimulatedDisk,
    pub(crate) rng: fastrand::Rng,
    pub(crate) shards: Vec<model::Shard>,
    pub(crate) running: Option<SteppedJournal>,
    journal_id: u64,
    /// The tickets since the journal was opened, with the outcomes that are certain already.
    tickets: Vec<Expected>,
    /// Committed index per shard, if the caller commits.
    committed: Vec<u64>,
    /// The line was durable up to this position.
    position: u64,
    now_ms: u64,
    payloads: u64,
    /// Calls to the disk fail, so errors are expected.
    pub(crate) is_disturbed: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let shape = Shape::of(&mut rng);
        Self::shaped(shape, rng)
    }

    pub(crate) fn shaped(shape: Shape, mut rng: fastrand::Rng) -> Self {
        let shard_count = usize::from(shape.shard_count);
        Self {
            shape,
            disk: SimulatedDisk::new(rng.u64(..)),
            shards: vec![model::Shard::default(); shard_count],
            running: None,
            journal_id: rng.u64(..),
            tickets: Vec::new(),
            committed: vec![0; shard_count],
            position: 0,
            now_ms: 1_700_000_000_000,
            payloads: 0,
            is_disturbed: false,
            rng,
        }
    }

    /// Returns the same journal on another disk, with its expected contents.
    pub(crate) fn elsewhere(&self, disk: SimulatedDisk, shards: Vec<model::Shard>) -> Self {
        let mut world = Self::shaped(self.shape, self.rng.clone());
        world.disk = disk;
        world.shards = shards;
        world.journal_id = self.journal_id;
        world
    }

    /// Returns the options to open with; the random number is different each time.
    pub(crate) fn options(&mut self) -> Options {
        let entropy = self.rng.u64(..);
        self.shape.options(self.journal_id, entropy)
    }

    /// Opens the journal and checks the recovered contents.
    pub(crate) fn open(&mut self) -> Result<(), OpenError> {
        let options = self.options();
        let mut opened = Journal::open_stepped(Arc::new(self.disk.clone()), &options)?;
        // Half of the runs write blocks during syncs, if these are long enough.
        if self.rng.bool() {
            let mut rng = fastrand::Rng::with_seed(self.rng.u64(..));
            opened.line.overlap_syncs(move |count| rng.usize(..count));
        }
        let position = opened.journal.durable_position().0;
        assert!(position >= self.position, "the line went back");
        self.position = position;
        for (number, shard) in self.shards.iter_mut().enumerate() {
            let id = ShardId(number as u16);
            let end = opened.journal.last(id, Stage::Written);
            assert_eq!(end, opened.journal.shard_end(id).index);
            if self.shape.commit == Commit::ByCaller {
                opened.journal.commit(id, end);
            }
            match read_all(&opened.journal, id) {
                Ok(streams) => shard.recovered(end.0, &streams),
                Err(_) if self.is_disturbed => return Ok(()),
                Err(error) => panic!("shard {number}: {error}"),
            }
            self.committed[number] = end.0;
            if self.shape.commit == Commit::ByCaller {
                let term = opened.journal.shard_end(id).term + 1;
                opened.journal.begin_reign(id, term);
            }
        }
        self.running = Some(opened);
        Ok(())
    }

    pub(crate) fn journal(&self) -> &Journal {
        match &self.running {
            Some(running) => &running.journal,
            None => panic!("nothing is open"),
        }
    }

    /// Stops the disk from this call on. The fault of the call itself depends on the end that
    /// follows.
    pub(crate) fn stop_at(&mut self, call: u64, end: End) {
        self.is_disturbed = true;
        self.disk.fail_once(Fault::Full, move |at| {
            at.number == call && !end.may_follow(at.kind)
        });
        self.disk
            .fail_once(Fault::Broken, move |at| at.number == call);
        self.disk
            .fail_always(Fault::Full, move |at| at.number > call);
    }

    pub(crate) fn end(&mut self, end: End) {
        match end {
            End::Crash => self.crash(),
            End::Kill => self.kill(),
        }
    }

    /// Simulates a power failure.
    pub(crate) fn crash(&mut self) {
        self.settle();
        self.disk.crash(&mut self.rng);
        self.forget();
    }

    /// Kills the process without a power failure.
    pub(crate) fn kill(&mut self) {
        self.settle();
        self.disk.kill();
        self.forget();
    }

    fn forget(&mut self) {
        self.disk.heal();
        self.is_disturbed = false;
        self.running = None;
        self.tickets.clear();
    }

    /// Runs a random action.
    pub(crate) fn act(&mut self) {
        self.now_ms += self.rng.u64(..500);
        match self.rng.u8(..100) {
            0..45 => self.write(),
            45..68 => drop(self.step_line()),
            68..90 => drop(self.step_filer()),
            90..96 => self.read_random_part(),
            96..98 => self.disk.write_back(&mut self.rng),
            98 => self.end_reign(),
            _ => self.cut(),
        }
    }

    /// Makes a few changes under one guard.
    pub(crate) fn write(&mut self) {
        let number = self.rng.usize(..self.shards.len());
        let Some(running) = &self.running else { return };
        let mut guard = running.journal.lock(ShardId(number as u16), self.now_ms);
        let mut changes = Vec::new();
        let mut ticket = None;
        for _ in 0..self.rng.usize(1..4) {
            let stream = StreamId(self.rng.u64(..self.shape.stream_count));
            let next = guard.next(stream);
            let (change, result) = match self.rng.u8(..100) {
                0..3 => (
                    Change::Start {
                        stream,
                        start: next,
                    },
                    guard.erase(stream),
                ),
                3..13 => {
                    let start = self.rng.u64(..=next);
                    (Change::Start { stream, start }, guard.trim(stream, start))
                }
                13..16 => {
                    let wrong = guard.append(stream, Some(next + 1), 0, b"wrong");
                    assert!(matches!(
                        wrong,
                        Err(AppendError::Conflict { next: at, .. }) if at == next
                    ));
                    continue;
                }
                _ => {
                    self.payloads += 1;
                    let payload = Payload {
                        id: self.payloads,
                        size: self.rng.usize(8..=self.shape.payload_size_max),
                    };
                    let appended = guard.append(stream, Some(next), 7, &payload.bytes());
                    let change = Change::Data {
                        stream,
                        offset: next,
                        payload,
                    };
                    let ticket = appended.map(|appended| {
                        assert_eq!(appended.offset, next);
                        appended.ticket
                    });
                    (change, ticket)
                }
            };
            match result {
                // A trim without effect writes nothing.
                Ok(nothing) if nothing.index == Index(0) => {}
                Ok(written) => {
                    assert!(ticket.is_none_or(|ticket| ticket == written), "one block");
                    ticket = Some(written);
                    changes.push(change);
                }
                Err(AppendError::Failed | AppendError::DiskFull) if self.is_disturbed => {}
                Err(AppendError::Full | AppendError::TooLarge { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        drop(guard);
        if let Some(ticket) = ticket {
            self.shards[number].add(ticket.index.0, changes);
            self.tickets.push(Expected {
                ticket,
                void: None,
                reached: None,
            });
        }
    }

    pub(crate) fn step_line(&mut self) -> LineStep {
        let Some(running) = &mut self.running else {
            return LineStep::Idle;
        };
        let step = running.line.step();
        if step == LineStep::Failed {
            let health = running.journal.health();
            assert!(self.is_disturbed, "the line failed: {health:?}");
        }
        self.settle();
        step
    }

    pub(crate) fn step_filer(&mut self) -> Step {
        let Some(running) = &mut self.running else {
            return Step::Idle;
        };
        let step = running.background.step(self.now_ms);
        if step == Step::Failed {
            let health = running.journal.health();
            assert!(self.is_disturbed, "the filing failed: {health:?}");
        }
        step
    }

    /// Records what was acknowledged, and lets readers see some of it.
    pub(crate) fn settle(&mut self) {
        let Some(running) = &self.running else { return };
        let journal = &running.journal;
        let shards = &mut self.shards;
        for expected in &mut self.tickets {
            let ticket = expected.ticket;
            let written = journal.status_at(Stage::Written, ticket);
            let committed = journal.status(ticket);
            if let Some(void) = expected.void {
                assert_eq!((written, committed), (void, void), "{ticket:?}");
                continue;
            }
            if written == Status::Durable && expected.reached.is_none() {
                shards[usize::from(ticket.shard.0)].acked(ticket.index.0);
                expected.reached = Some(Stage::Written);
            }
            if committed == Status::Durable {
                assert_eq!(written, Status::Durable, "committed blocks are written");
                expected.reached = Some(Stage::Committed);
            }
            for (stage, status) in [(Stage::Written, written), (Stage::Committed, committed)] {
                match status {
                    Status::Pending => assert_ne!(expected.reached, Some(stage), "{ticket:?}"),
                    Status::Durable => {}
                    Status::Failed => {
                        assert!(matches!(journal.health(), Health::Failed { .. }));
                    }
                    Status::Moved | Status::Cut => panic!("{ticket:?} is {status:?}"),
                }
            }
        }
        if self.tickets.len() > TICKETS_MAX {
            let is_open = |it: &Expected| it.void.is_none() && it.reached != Some(Stage::Committed);
            self.tickets.retain(is_open);
        }
        self.position = self.position.max(journal.durable_position().0);
        if self.shape.commit == Commit::ByCaller {
            for (number, shard) in shards.iter().enumerate() {
                let committed = self.rng.u64(self.committed[number]..=shard.durable());
                journal.commit(ShardId(number as u16), Index(committed));
                self.committed[number] = committed;
            }
        }
    }

    /// Ends the reign over a shard and begins another.
    fn end_reign(&mut self) {
        let number = self.rng.usize(..self.shards.len());
        let shard = ShardId(number as u16);
        self.journal().end_reign(shard);
        self.note_end_of_reign(number, self.journal().shard_end(shard).index);
        let refused = self.journal().lock(shard, self.now_ms).append(
            StreamId(0),
            None,
            0,
            b"without a reign",
        );
        let expected = [
            AppendError::Moved,
            AppendError::Failed,
            AppendError::DiskFull,
        ];
        assert!(refused.is_err_and(|error| expected.contains(&error)));
        self.begin_reign(shard);
    }

    fn begin_reign(&self, shard: ShardId) {
        let term = self.journal().shard_end(shard).term + 1;
        self.journal().begin_reign(shard, term);
    }

    /// Notes that the blocks after the last one that the line has taken will never exist.
    fn note_end_of_reign(&mut self, number: usize, taken: Index) {
        if taken.0 < self.shards[number].last() {
            self.shards[number].dropped(taken.0 + 1);
            self.note_void(number, Index(taken.0 + 1), Status::Moved);
        }
    }

    /// Notes the outcome of the blocks of a shard from `index` on.
    fn note_void(&mut self, number: usize, index: Index, outcome: Status) {
        let concerned = |it: &&mut Expected| {
            usize::from(it.ticket.shard.0) == number && it.ticket.index >= index
        };
        for expected in self.tickets.iter_mut().filter(concerned) {
            assert_ne!(
                expected.reached,
                Some(Stage::Committed),
                "committed for good"
            );
            expected.void.get_or_insert(outcome);
        }
    }

    /// Voids a shard's tail, as a follower does.
    fn cut(&mut self) {
        if self.shape.commit != Commit::ByCaller {
            return;
        }
        let number = self.rng.usize(..self.shards.len());
        let shard = ShardId(number as u16);
        let last = self.journal().shard_end(shard).index.0;
        let index = self.rng.u64(self.committed[number]..=last) + 1;
        // Ended first, so that it is known which blocks the line has taken.
        self.journal().end_reign(shard);
        self.note_end_of_reign(number, self.journal().shard_end(shard).index);
        match self.journal().cut(shard, Index(index)) {
            Ok(()) if index <= self.shards[number].last() => {
                self.shards[number].cut(index);
                self.note_void(number, Index(index), Status::Cut);
            }
            Ok(()) => {}
            Err(CutError::Failed) if self.is_disturbed => {}
            Err(error) => panic!("{error}"),
        }
        self.begin_reign(shard);
    }

    fn visible(&self, number: usize) -> Streams {
        match self.shape.commit {
            Commit::WithDurable => self.shards[number].streams(),
            Commit::ByCaller => self.shards[number].streams_up_to(self.committed[number]),
        }
    }

    /// Reads a part of a stream and compares it.
    fn read_random_part(&mut self) {
        let number = self.rng.usize(..self.shards.len());
        let id = ShardId(number as u16);
        let stream = StreamId(self.rng.u64(..self.shape.stream_count));
        let wanted = self.visible(number).remove(&stream).unwrap_or_default();
        let from = self.rng.u64(..=wanted.next + 1);
        let limit = ReadLimit {
            records: self.rng.usize(1..20),
            bytes: self.rng.usize(1..5000),
        };
        let read = match self.journal().read(id, stream, from, limit) {
            Ok(read) => read,
            Err(ReadError::Trimmed { start }) => {
                assert!(start == wanted.start && from < start);
                return;
            }
            Err(ReadError::Io(_) | ReadError::Extent(_)) if self.is_disturbed => return,
            Err(error) => panic!("{error}"),
        };
        assert_eq!((read.start, read.next_durable), (wanted.start, wanted.next));
        let rest = wanted.records.range(from..);
        let expected = rest.clone().take(read.records.len());
        for (record, (offset, payload)) in read.records.iter().zip(expected) {
            assert_eq!(record.offset, *offset);
            assert!(record.payload == payload.bytes(), "offset {offset}");
        }
        assert!(read.records.len() <= rest.clone().count().min(limit.records));
        assert_eq!(read.records.is_empty(), rest.count() == 0);
    }

    /// Steps until there is no work left.
    pub(crate) fn drain(&mut self) {
        let mut idle = 0;
        // Each step makes progress or reports that there is none to make.
        for _ in 0..100_000 {
            let line = self.step_line();
            let filer = self.step_filer();
            self.now_ms += 100;
            let is_idle = line == LineStep::Idle && filer == Step::Idle;
            idle = if is_idle { idle + 1 } else { 0 };
            if idle == 3 {
                return;
            }
        }
        panic!("no end of work");
    }

    /// Checks that everything acknowledged is there, stream by stream.
    pub(crate) fn check(&self) {
        for (number, shard) in self.shards.iter().enumerate() {
            if self.shape.commit == Commit::WithDurable {
                let found = read_all(self.journal(), ShardId(number as u16));
                assert!(found.unwrap() == shard.streams(), "shard {number}");
            }
        }
    }
}

/// Reads everything visible of a shard. Payloads are identified by their bytes.
pub(crate) fn read_all(journal: &Journal, shard: ShardId) -> Result<Streams, ReadError> {
    let mut streams = Streams::new();
    for (id, state) in journal.streams(shard, None, usize::MAX) {
        if state.next_durable == 0 {
            // None of it is durable, or all of it was cut.
            continue;
        }
        let mut stream = Stream {
            start: state.start,
            next: state.next_durable,
            records: BTreeMap::new(),
        };
        let mut from = state.start;
        while from < state.next_durable {
            let limit = ReadLimit {
                records: 100,
                bytes: 1 << 16,
            };
            let read = journal.read(shard, id, from, limit)?;
            assert!(!read.records.is_empty(), "stream {} ends at {from}", id.0);
            for record in read.records {
                assert_eq!(record.offset, from, "stream {}", id.0);
                stream.records.insert(from, Payload::of(&record.payload));
                from += 1;
            }
        }
        streams.insert(id, stream);
    }
    Ok(streams)
}
