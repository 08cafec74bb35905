//! Names and their streams: creation with the first record, restarts, new names.

use journal::disk::SimulatedDisk;
use journal::{Background, Line, Stage};
use platform::testing::journal_on;

use super::*;
use crate::names::NameCursor;

/// A store and its journal's writer.
struct World {
    disk: SimulatedDisk,
    starts: u64,
    store: Store,
    line: Line,
    _background: Background,
}

impl World {
    fn new() -> Self {
        Self::on(SimulatedDisk::new(1), 1)
    }

    fn on(disk: SimulatedDisk, starts: u64) -> Self {
        let (journal, line, background) = journal_on(&disk, starts).unwrap();
        Self {
            store: Store::open(journal, 1_000, 0).unwrap(),
            disk,
            starts,
            line,
            _background: background,
        }
    }

    fn restarted(self) -> Self {
        let Self { disk, starts, .. } = self;
        Self::on(disk, starts + 1)
    }

    /// Appends a record to a raw stream, creating it if necessary.
    fn append(&self, name: &str, bytes: &[u8]) -> Location {
        let shard = self.store.shard_of(name);
        let lock = |shard| self.store.journal.lock(shard, 0);
        let size = AppendSize {
            bytes: bytes.len(),
            count: 1,
        };
        let locked = self
            .store
            .lock_or_create(shard, [(Kind::Raw, name)], size, lock);
        let (mut guard, [location]) = locked.unwrap();
        guard.append(location.stream, None, 1, bytes).unwrap();
        location
    }

    fn read_names(&self, cursor: &mut NameCursor) -> Vec<String> {
        let mut names = Vec::new();
        self.store
            .read_names(cursor, |_, name, _| names.push(name.to_owned()));
        names.sort_unstable();
        names
    }
}

#[test]
fn stream_and_first_record_are_one_block_of_one_shard() {
    let mut world = World::new();
    let location = world.append("acme/demo/log", b"first");
    let ends = || load::shards(&world.store.journal).map(|it| world.store.journal.shard_end(it));
    let blocks: Vec<_> = ends().map(|end| end.index.0).collect();
    let mut expected = vec![0; blocks.len()];
    expected[usize::from(location.shard.0)] = 1;
    assert_eq!(blocks, expected);
    world.line.step();
    let written = world.store.journal.last(location.shard, Stage::Committed);
    assert_eq!(written.0, 1);
    let state = world.store.journal.stream(location.shard, location.stream);
    assert_eq!(state.unwrap().next_durable, 1);
}

#[test]
fn names_and_numbers_survive_a_restart() {
    let mut world = World::new();
    let names: Vec<_> = (0..100)
        .map(|number| format!("acme/demo/{number}"))
        .collect();
    let places: Vec<_> = names.iter().map(|name| world.append(name, b"x")).collect();
    world.line.step();
    let world = world.restarted();
    for (name, location) in names.iter().zip(&places) {
        assert_eq!(world.store.find(Kind::Raw, name), Some(*location));
    }
    let other = world.append("acme/demo/other", b"x");
    let numbers = places.iter().map(|it| it.stream);
    assert!(numbers.clone().all(|number| number != other.stream));
    assert_eq!(world.store.stream_count(), 101);
    assert_eq!(
        world.store.numbers_end(),
        1 + numbers.chain([other.stream]).max().unwrap().0
    );
}

#[test]
fn names_are_read_once_and_when_they_are_durable() {
    let mut world = World::new();
    let mut cursor = NameCursor::default();
    world.append("acme/demo/a", b"x");
    world.append("acme/demo/b", b"x");
    assert_eq!(world.read_names(&mut cursor), Vec::<String>::new());
    world.line.step();
    world.append("acme/demo/c", b"x");
    assert_eq!(
        world.read_names(&mut cursor),
        ["acme/demo/a", "acme/demo/b"]
    );
    world.append("acme/demo/a", b"y");
    world.line.step();
    assert_eq!(world.read_names(&mut cursor), ["acme/demo/c"]);
    let world = world.restarted();
    let all = world.read_names(&mut NameCursor::default());
    assert_eq!(all, ["acme/demo/a", "acme/demo/b", "acme/demo/c"]);
}

#[test]
fn followers_of_names_are_woken_by_new_names_of_any_shard() {
    let mut world = World::new();
    let mut cursor = NameCursor::default();
    let follow = |world: &World, cursor: &NameCursor| {
        let waker = Waker::noop();
        let followings = world.store.follow_all_names(cursor, waker);
        let followings = followings?;
        followings.iter().for_each(|it| world.store.unfollow(it));
        Some(followings.len())
    };
    let shard_count = usize::from(world.store.journal.shard_count());
    for name in ["acme/demo/a", "acme/demo/b", "acme/demo/c", "acme/demo/d"] {
        assert_eq!(follow(&world, &cursor), Some(shard_count));
        world.append(name, b"x");
        world.line.step();
        assert_eq!(follow(&world, &cursor), None, "{name} is there");
        assert_eq!(world.read_names(&mut cursor), [name]);
    }
}

#[test]
fn record_that_fills_a_block_is_appended_after_its_stream_is_created() {
    let mut world = World::new();
    // Half a segment is the limit of a block.
    let bytes = vec![7; (512 << 10) - 100];
    let location = world.append("acme/demo/large", &bytes);
    let end = world.store.journal.shard_end(location.shard);
    assert_eq!(end.index.0, 2, "the entry and the record");
    world.line.step();
    let world = world.restarted();
    assert_eq!(
        world.store.find(Kind::Raw, "acme/demo/large"),
        Some(location)
    );
    let state = world.store.journal.stream(location.shard, location.stream);
    assert_eq!(state.unwrap().next, 1);
}

#[test]
fn number_of_records_without_an_entry_is_not_reused() {
    let world = World::new();
    let shard = world.store.shard_of("acme/demo/log");
    let number = world.store.directory.read().next_number(shard);
    let mut guard = world.store.journal.lock(shard, 0);
    guard.append(number, None, 1, b"left over").unwrap();
    drop(guard);
    let location = world.append("acme/demo/log", b"first");
    assert!(location.stream > number);
    let state = world.store.journal.stream(shard, location.stream);
    assert_eq!(state.unwrap().next, 1);
}

#[test]
fn names_that_were_cut_are_forgotten_when_a_reign_begins() {
    let options = journal::Options {
        journal_id: 7,
        entropy: 1,
        shard_count: 1,
        segment_size: 64 << 10,
        reserve_size: 0,
        commit: journal::Commit::ByCaller,
        ..journal::Options::default()
    };
    let disk = Arc::new(SimulatedDisk::new(1));
    let stepped = Journal::open_stepped(disk, &options).unwrap();
    let (journal, mut line) = (Arc::new(stepped.journal), stepped.line);
    let store = Store::new(journal.clone(), 1_000);
    let shard = ShardId(0);
    let append = |name: &str| {
        let lock = |shard| journal.lock(shard, 7);
        let locked = store.lock_or_create(shard, [(Kind::Raw, name)], AppendSize::default(), lock);
        let (mut guard, [location]) = locked.unwrap();
        guard.append(location.stream, None, 1, b"x").unwrap();
        location
    };
    journal.begin_reign(shard, 1);
    store.begin_reign(shard).unwrap();
    let first = append("acme/demo/first");
    line.step();
    let first_end = journal.shard_end(shard).index;
    journal.commit(shard, first_end);
    let cut = append("acme/demo/cut");
    line.step();
    journal.cut(shard, journal::Index(first_end.0 + 1)).unwrap();
    line.step();
    assert!(store.find(Kind::Raw, "acme/demo/cut").is_some());

    journal.begin_reign(shard, 2);
    journal.commit(shard, journal.shard_end(shard).index);
    store.begin_reign(shard).unwrap();
    assert_eq!(store.find(Kind::Raw, "acme/demo/cut"), None);
    assert_eq!(store.find(Kind::Raw, "acme/demo/first"), Some(first));
    assert_eq!(store.stream_count(), 1);
    let second = append("acme/demo/second");
    assert_eq!(second.stream, cut.stream, "the number was never committed");
    line.step();
    journal.commit(shard, journal.shard_end(shard).index);
    let mut names = Vec::new();
    let mut cursor = NameCursor::default();
    store.read_names(&mut cursor, |_, name, _| names.push(name.to_owned()));
    assert_eq!(names, ["acme/demo/first", "acme/demo/second"]);
    assert_eq!(store.created_ms(second).unwrap(), Some(7));
}
