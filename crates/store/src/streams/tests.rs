//! Retention of raw streams by age.

use journal::disk::SimulatedDisk;
use journal::{
    Commit, DecidedBlock, Index, Journal, Line, LineStep, MEMBERS_STREAM, Options, ShardId,
    SteppedJournal,
};

use platform::testing::{ManualClock, journal_on, platform};
use platform::{RequestContext, Tally};

use super::*;
use crate::stream::Stream;

const NAME: &str = "acme/demo/log";
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Raw streams, their clock and their journal's writer.
struct World {
    streams: Streams,
    clock: Arc<ManualClock>,
    line: Line,
}

impl World {
    fn append(&mut self) {
        let mut stream = Stream::new(Name::parse(NAME).unwrap()).unwrap();
        let records = [&b"record"[..]].into_iter();
        let context = RequestContext {
            now_ns: 0,
            unix_ms: self.streams.platform.unix_ms(),
            round: &mut None,
            tally: &mut Tally::default(),
        };
        let appended = self.streams.append(&mut stream, None, records, context);
        drop(appended.unwrap());
        self.line.step();
    }

    fn pass(&self, ms: u64) {
        self.clock.pass_ns(ms * 1_000_000);
        self.clock.step_wall_ms(ms as i64);
    }

    /// Applies a retention of 90 minutes: the streams that were cut, and where the stream starts
    /// then.
    fn retain(&mut self) -> (usize, u64) {
        let keep = Retention {
            age: Some(Duration::from_millis(90 * MINUTE_MS)),
            bytes: None,
        };
        let count = self.streams.apply_retention(keep).unwrap();
        self.line.step();
        let (name, location) = self.streams.find(NAME).unwrap();
        (count, self.streams.view(name.base(), location).start)
    }
}

/// Writes a blank block and a membership to each shard, as a cluster does.
fn write_members(disk: &SimulatedDisk) {
    let options = Options {
        journal_id: 1,
        segment_size: 1 << 20,
        reserve_size: 0,
        commit: Commit::ByCaller,
        ..Options::default()
    };
    let opened = Journal::open_stepped(Arc::new(disk.clone()), &options).unwrap();
    let SteppedJournal {
        journal, mut line, ..
    } = opened;
    for shard in (0..journal.shard_count()).map(ShardId) {
        let last = journal.last_taken(shard);
        let (term, next) = (last.term + 1, Index(last.index.0 + 1));
        let blank = DecidedBlock::blank(term, next, 1);
        let members = DecidedBlock::members(term, Index(next.0 + 1), 1, 0, b"a, b, c");
        journal.append_decided(shard, &blank).unwrap();
        journal.append_decided(shard, &members).unwrap();
    }
    while line.step() == LineStep::Worked {}
}

fn append(disk: &SimulatedDisk, starts: u64) -> Vec<String> {
    let (journal, line, _background) = journal_on(disk, starts).unwrap();
    let members = |shard| journal.stream(ShardId(shard), MEMBERS_STREAM);
    assert!(starts == 1 || members(0).is_some_and(|it| it.next_durable == 1));
    let clock = ManualClock::at(1_700_000_000_000);
    let store = Arc::new(Store::open(journal.clone(), 1_000_000, 1).unwrap());
    let mut world = World {
        streams: Streams::new(platform(clock.clone()), store),
        clock,
        line,
    };
    world.append();
    let (_, location) = world.streams.find(NAME).unwrap();
    assert_eq!(world.streams.view(NAME, location).next, starts);
    let listed = world.streams.list("", "", 10);
    listed.into_iter().map(|view| view.name).collect()
}

#[test]
fn store_ignores_the_memberships_of_its_shards() {
    let disk = SimulatedDisk::new(1);
    let names = append(&disk, 1);
    write_members(&disk);
    assert_eq!(append(&disk, 2), names);
    assert_eq!(append(&disk, 3), names);
}

#[test]
fn raw_stream_retention_ignores_short_wall_clock_steps() {
    let disk = SimulatedDisk::new(1);
    let (journal, line, _background) = journal_on(&disk, 1).unwrap();
    let clock = ManualClock::at(1_700_000_000_000);
    let store = Arc::new(Store::open(journal, 1_000_000, 0).unwrap());
    let mut world = World {
        streams: Streams::new(platform(clock.clone()), store),
        clock,
        line,
    };
    world.append();
    assert_eq!(world.retain(), (0, 0));
    for _ in 0..2 {
        world.pass(60 * MINUTE_MS);
        world.append();
    }
    assert_eq!(world.retain(), (1, 1));
    assert_eq!(world.retain(), (0, 1));
    world.clock.step_wall_ms(30 * DAY_MS as i64);
    assert_eq!(world.retain(), (0, 1));
    world.pass(11 * MINUTE_MS);
    assert_eq!(world.retain(), (1, 3), "the step has lasted");
}
